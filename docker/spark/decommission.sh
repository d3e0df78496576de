#!/bin/sh
# The preStop hook of executor pods with spark.decommission.enabled=true: asks the executor to drain, and waits for its end.
# Kubernetes ends the pod after terminationGracePeriodSeconds at the latest.
set -eu
kill -s PWR 1
while kill -0 1 2>/dev/null; do
    sleep 1
done
