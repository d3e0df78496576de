#!/bin/sh
# Starts a driver or an executor on Kubernetes: Spark gives its pods arguments and environment variables, but no command.
# Any other arguments are a command, such as the one of a standalone master.
set -eu
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

case ${1:-} in
driver)
    shift
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
        --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    set --
    while option=$(printenv "SPARK_JAVA_OPT_$#"); do
        set -- "$@" "$option"
    done
    # exec makes Java PID 1, which receives SIGTERM when the pod is deleted, and SIGPWR from decommission.sh.
    exec "$java" "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:-/opt/spark/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    exec "$@"
    ;;
esac
