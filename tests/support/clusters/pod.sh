#!/bin/sh
# Runs a container's command with a root file system of its own, in the mount, UTS and PID namespaces that unshare made:
# pod.sh SCRATCH MOUNTS HOSTNAME COMMAND... where each line of the file MOUNTS is "source<tab>target".
# The root is an overlay over this machine's, so whatever the container writes is gone with it.
set -eu
scratch=$1 mounts=$2
hostname "$3"
shift 3
mount -t tmpfs tmpfs "$scratch"
root=$scratch/root
mkdir "$scratch/upper" "$scratch/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
while IFS='	' read -r source target; do
    # Resolved inside: /var/run is a symbolic link to /run, which must not be this machine's.
    target=$root$(chroot "$root" realpath -m "$target")
    if [ -d "$source" ]; then
        mkdir -p "$target"
    else
        mkdir -p "$(dirname "$target")"
        [ -e "$target" ] || : >"$target"
    fi
    mount --rbind "$source" "$target"
done <"$mounts"
exec chroot "$root" "$@"
