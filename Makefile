# `make help` lists the targets. Everything is installed into .venv; nothing else of this machine is changed.
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Without compiled modules, each process of a stack compiles Airflow, Spark, and Sluiceway for some seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-hdfs down test check proof lint style types imports site format docs test-airflow test-clusters build-kubernetes test-kubernetes
.PHONY: faults bench bench-airflow bench-dlt bench-dlt-sink bench-folder bench-frames bench-http bench-intervals bench-many bench-nats bench-observability bench-mqtt bench-rabbitmq bench-redis bench-scaling bench-search clean test-columns test-frames bench-rest bench-rest-versions bench-migrate
.PHONY: test-docs test-executors test-preview test-security test-security-cases test-stores test-plugins test-plugins-cdc test-plugins-kills bench-plugins test-cdc test-page
.PHONY: test-matrix test-airflow-versions test-own-airflow bench-metrics test-lineage test-metrics test-cdc-keys test-cdc-kills bench-cdc screenshots mutants mutants-map

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/.ready: setup.cfg constraints.txt
	@tools/make-venv $(VENV)

demo: $(VENV)/.ready  ## start broker, Airflow and REST; run a file through Kafka to a file as two DAGs; leave it running
	@$(BIN)/sluiceway demo

demo-hdfs: $(VENV)/.ready  ## log lines through Kafka into hourly Parquet folders on a real HDFS, queried with Spark; leave it running
	@$(BIN)/python tools/demo_hdfs.py

down: $(VENV)/.ready  ## end every process that the demos or `sluiceway up` started; data is kept
	@$(BIN)/sluiceway down

lint: style types imports  ## ruff, mypy, import-linter, and that the generated pages are up to date

style: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/make_docs.py --check

types: $(VENV)/.ready
	$(BIN)/mypy plugin tests tools

imports: $(VENV)/.ready
	PYTHONPATH=plugin $(BIN)/lint-imports --config setup.cfg

check: $(VENV)/.ready  ## a change in 90 seconds: style, types, imports, and the unit tests that reach it (SINCE=main)
	@$(BIN)/python tools/check.py --since $${SINCE:-HEAD}

format: $(VENV)/.ready  ## let ruff sort imports and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.ready  ## write the generated pages of docs/reference, and build the site into build/site
	$(BIN)/python tools/make_docs.py
	$(MAKE) --no-print-directory site

site: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

test: $(VENV)/.ready  ## everything that must hold on each change: lint, unit, broker, Spark and Airflow tests; 15 minutes
	@tools/run-tests $(BIN)

proof: $(VENV)/.ready  ## all targets that prove more than `make test` has time for, and their table tests/PROOF.md; hours (ONLY=faults,bench)
	$(BIN)/python tools/proof.py --only "$$ONLY"

test-long: $(VENV)/.ready  ## the tests of a broker, Spark, and databases that `make test` has no time for, and no other target runs
	$(BIN)/python -m pytest tests/integration tests/unit -m long -v -p no:cacheprovider

mutants: $(VENV)/.ready  ## break the product in 300 chosen places: a test must notice each (ONLY=masks,cdc-window JOBS=2)
	PYTHONPATH=tests $(BIN)/python -m mutants.run --only "$(ONLY)" --jobs $${JOBS:-2}

mutants-map: $(VENV)/.ready  ## find the unit tests that reach the places of new mutants; several times as long as the tests (ONLY=masks)
	PYTHONPATH=tests $(BIN)/python -m mutants.reach --only "$(ONLY)"

test-airflow: $(VENV)/.ready  ## the longer tests on a real Airflow
	$(BIN)/python -m pytest tests/airflow -m airflow -p no:cacheprovider

test-airflow-versions: $(VENV)/.ready  ## unit tests of operators, sensors, and provider with each minor version of Airflow (VERSIONS="3.1.8"); needs uv
	$(BIN)/python tools/test_airflow_versions.py $(VERSIONS)

test-own-airflow: $(VENV)/.ready  ## the tutorial of a newcomer's own Airflow, as printed, outside the repository (PYTHONS="3.13 3.12"); 20 minutes
	PYTHONPATH=plugin:tests $(BIN)/python tools/follow_page.py $(PYTHONS)

test-docs: $(VENV)/.ready  ## the commands of tutorials, recipes, guides, and the reference, run as printed on a real stack; tests/support/docs_pages.py lists the pages
	$(BIN)/python -m pytest tests/airflow/test_docs_pages.py tests/unit/testing/test_documentation.py tests/unit/testing/test_docs_pages.py -p no:cacheprovider

test-lineage: $(VENV)/.ready  ## events that OpenLineage's own provider makes of connectors' runs
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt apache-airflow-providers-openlineage
	$(BIN)/python -m pytest tests/unit/provider/lineage tests/integration/test_lineage_shapes.py -v -p no:cacheprovider

test-matrix: $(VENV)/.ready  ## other Pythons, Airflows, Sparks, and Kafka clients, each from the wheel by pip alone; a table (CELLS="newest-3.13 spark-3.5")
	PYTHONPATH=plugin:tests $(BIN)/python tools/run_matrix.py $(CELLS)

test-clusters: $(VENV)/.ready  ## kill each part of real Spark and YARN clusters, and print a table (ROUNDS=10 SEED=1 KILLS=executor LOAD=1)
	$(BIN)/python -m pytest tests/clusters tests/integration/test_spark_cluster.py tests/integration/test_elastic_executors.py tests/integration/test_python_archive.py -v -s \
		-p no:cacheprovider

build-kubernetes: $(VENV)/.ready  ## build etcd, a Kubernetes API server and helm with Go into the cache folder, for test-kubernetes; 8 minutes
	PYTHONPATH=tests $(BIN)/python -m support.clusters.kubernetes_build

test-kubernetes: build-kubernetes  ## connectors in pods of a real API server; pods are local processes, so this needs root
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kubernetes]'
	$(BIN)/python -m pytest tests/clusters/test_kubernetes.py -v -s -p no:cacheprovider

test-executors: build-kubernetes  ## connectors under CeleryExecutor and KubernetesExecutor: kill each part; needs root; hours (KILLS=20)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt apache-airflow-providers-celery 'celery<5.7'
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[kubernetes]'
	$(BIN)/python -m pytest tests/executors -v -s -p no:cacheprovider

test-frames: $(VENV)/.ready  ## kill sinks to files and tables, and SparkSource, at random and at each point of a commit; 3 hours (KILLS=50 CLUSTER_KILLS=50 SEED=1)
	$(BIN)/python -m pytest tests/integration/test_file_sinks.py tests/integration/test_table_sinks.py -p no:cacheprovider
	$(BIN)/python -m pytest tests/integration/test_table_compaction.py tests/integration/test_table_sinks_spark.py \
		tests/integration/test_spark_formats.py -m long -p no:cacheprovider
	$(BIN)/python -m pytest tests/frames -v -s -p no:cacheprovider

test-security: test-security-cases build/fab/.ready  ## generated cases, roles, canaries, and names on real stores; hours (CASES=1000000 FIRST=0 SEED=0)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt apache-airflow-providers-openlineage
	$(BIN)/python -m pytest tests/unit/provider/api tests/unit/preview tests/integration/test_isolated_requests.py \
		tests/integration/test_spark_secrets.py tests/integration/test_names_of_records.py tests/airflow/test_roles.py tests/airflow/test_canaries.py -v -p no:cacheprovider
	AIRFLOW__CORE__AUTH_MANAGER=airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager \
		build/fab/bin/python -m pytest tests/airflow/test_roles.py -v -p no:cacheprovider

test-security-cases: $(VENV)/.ready  ## names, records, configs, bytes of protocols, and REST bodies with generated content (CASES=250000 FIRST=0 SEED=0)
	CASES=$${CASES:-1000000} $(BIN)/python -m pytest tests/unit/security tests/unit/connectors/test_path_elements.py \
		tests/unit/connectors/jdbc/test_url.py tests/unit/provider/lineage/test_datasets.py tests/unit/rest/test_fuzz.py \
		-n 2 --timeout 0 -q -p no:cacheprovider

# FAB's auth manager, and the packages of the environment.
build/fab/.ready: $(VENV)/.ready
	$(BIN)/python -m venv --clear --without-pip build/fab
	printf '%s\n' "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')" "$$PWD/plugin" \
		> "$$(build/fab/bin/python -c 'import site; print(site.getsitepackages()[0])')/environment.pth"
	$(BIN)/python -m pip --python build/fab/bin/python install --quiet --disable-pip-version-check -c constraints.txt apache-airflow-providers-fab
	touch $@

test-preview: $(VENV)/.ready  ## previews of every built-in connector on a real broker, PostgreSQL and MariaDB write nothing; 5 minutes
	$(BIN)/python -m pytest tests/integration/test_preview.py -v -p no:cacheprovider

test-stores: $(VENV)/.ready  ## file sinks with servers of the protocols of Google Cloud Storage and Azure, and with a Hive metastore
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[azure,gcs,hive,test-gcs]'
	npm install --silent --no-save --prefix build/azurite azurite@3
	PATH=$$PWD/build/azurite/node_modules/.bin:$$PATH $(BIN)/python -m pytest tests/integration/test_file_sinks_stores.py \
		tests/integration/test_file_sinks_hive.py -v -p no:cacheprovider
	$(BIN)/python -m pytest tests/integration/test_preview.py -k into_a_store -v -p no:cacheprovider

test-page: $(VENV)/.ready  ## the page in Airflow in Chromium: forms for every built-in connector, offsets, dead letters, axe-core
	$(BIN)/python -m pytest tests/page tests/airflow/test_ui.py -v -p no:cacheprovider

screenshots: $(VENV)/.ready  ## make the pictures of the page in docs/images
	$(BIN)/python -m pytest tests/airflow/test_ui.py -k readme -p no:cacheprovider
	$(BIN)/python -m pytest tests/page/test_editor.py -k catalogue -p no:cacheprovider
	for each in connectors connector flow; do cp build/screenshots/readme-$$each.png docs/images/$$each.png; done
	cp build/screenshots/form.png docs/images/editor.png

test-metrics: $(VENV)/.ready  ## boards and alerts with a real Prometheus and real faults; metrics beside Kafka Connect's under the JMX exporter; traces
	PYTHONPATH=tests $(BIN)/python -m support.prometheus
	npm install --silent --no-save --prefix build/grafana-schema @grafana/schema@13 typescript@7
	$(BIN)/python -m pytest tests/unit/docker/test_monitoring.py tests/monitoring tests/integration/test_traces.py -v -s -p no:cacheprovider

test-plugins: $(VENV)/.ready  ## Java plugins, published ones among them, on a real broker and PostgreSQL (ROUNDS=20: restarts and kills of each kind of source)
	$(BIN)/python -m pytest tests/integration/test_java_*.py tests/integration/test_migrate.py \
		tests/integration/test_debezium_transforms.py tests/integration/test_maven.py tests/integration/test_plugin_install.py \
		tests/airflow/test_plugin_install.py -v -p no:cacheprovider

test-plugins-cdc: $(VENV)/.ready  ## Debezium's Java connectors against records of Debezium on Kafka Connect: 158 scenarios (JOBS=3 ONLY=pg_types)
	$(BIN)/python -m pytest tests/cdc/test_debezium_plugins.py -v -s -p no:cacheprovider

test-plugins-kills: $(VENV)/.ready  ## kill the processes of Debezium's source and JDBC sink, each 20 times (KILLS=20 SEED=1)
	$(BIN)/python -m pytest tests/faults/test_java_plugins.py -v -s -p no:cacheprovider

test-cdc: $(VENV)/.ready  ## change data capture: records of Debezium, handovers, memory, large snapshots (ROWS, TABLE_ROWS=5000000 SECONDS=120)
	$(BIN)/python -m pytest tests/cdc -v -s -p no:cacheprovider
	$(BIN)/python -m pytest tests/unit/connectors/cdc tests/integration/test_log_values.py tests/integration/test_jdbc_rewind.py \
		-m long -v -p no:cacheprovider

test-cdc-keys: $(VENV)/.ready  ## change data capture: snapshots of random tables by keys of all types, some killed in the middle (TABLES=600 KILLS=12 SEED=1 FIRST=0)
	$(BIN)/python -m pytest tests/cdc/test_keys.py -v -s -p no:cacheprovider

test-cdc-kills: $(VENV)/.ready  ## change data capture under load while tasks, drivers, databases, and networks fail (KILLS=50 SEED=1)
	$(BIN)/python -m pytest tests/faults/test_cdc.py -v -s -p no:cacheprovider

test-columns: $(VENV)/.ready  ## columnar forms against row forms: 10,000 generated cases each (EXAMPLES=10000)
	EXAMPLES=$${EXAMPLES:-10000} $(BIN)/python -m pytest tests/unit/columns tests/unit/converters tests/unit/transforms/columns \
		tests/unit/runtime/transforms/test_column_chain.py tests/conformance/test_columns.py tests/conformance/test_transform_columns.py \
		-k "columns or arrays or rows" -n 2 --timeout 3600 -p no:cacheprovider

faults: $(VENV)/.ready  ## the fault matrix: each fault for real, and a table of what was seen (KILLS=20 AWAY=60)
	$(BIN)/python -m pytest tests/faults tests/integration/test_task_hosts.py tests/integration/test_warm_batches.py \
		tests/integration/test_shared_applications.py tests/integration/test_dead_letter_topic.py tests/integration/test_faulty_broker.py -p no:cacheprovider

bench: $(VENV)/.ready  ## lines per second beside real Kafka Connect, as ratios; a chain of transforms; how soon changes are seen
	$(BIN)/python tests/benchmarks/bench_engine.py
	$(BIN)/python tests/benchmarks/bench_chain.py
	$(BIN)/python tests/benchmarks/bench_columns.py
	$(BIN)/python tests/benchmarks/bench_latency.py

bench-metrics: $(VENV)/.ready  ## lines per second with metrics and with traces beside those without, interleaved (LINES=2000000 ROUNDS=7)
	$(BIN)/python tests/benchmarks/bench_metrics.py --lines $${LINES:-2000000} --rounds $${ROUNDS:-7}

bench-frames: $(VENV)/.ready  ## file and table sinks beside Kafka Connect's FileStreamSink and Iceberg's own sink (RECORDS=800000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_frames.py --records $${RECORDS:-800000} --rounds $${ROUNDS:-3}

bench-intervals: $(VENV)/.ready  ## an exact run over an hour of a topic of 24 beside one of that hour alone (RECORDS=1000000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_intervals.py --records $${RECORDS:-1000000} --rounds $${ROUNDS:-3}

bench-search: $(VENV)/.ready  ## records per second of OpenSearchSink beside bulk requests alone, on a real node (RECORDS=200000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_search_sink.py --records $${RECORDS:-200000} --rounds $${ROUNDS:-3}

bench-dlt: $(VENV)/.ready  ## rows per second of CPU of DltSource beside a pipeline of dlt, as dicts and as Arrow (ROWS=1000000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_dlt_source.py --rows $${ROWS:-1000000} --rounds $${ROUNDS:-3}

bench-dlt-sink: $(VENV)/.ready  ## records per second of DltSink into DuckDB, files, and PostgreSQL, beside dlt alone (RECORDS=500000 LOAD=50000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_dlt_sink.py --records $${RECORDS:-500000} --load $${LOAD:-50000} --rounds $${ROUNDS:-3}

bench-rabbitmq: $(VENV)/.ready  ## messages per second of RabbitMQ's sources and sink beside the client alone, on a real server (RECORDS=100000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_rabbitmq.py --records $${RECORDS:-100000} --rounds $${ROUNDS:-3}

bench-http: $(VENV)/.ready  ## records per second of HttpSource and HttpSink beside the client alone, on a server in Python (RECORDS=20000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_http.py --records $${RECORDS:-20000} --rounds $${ROUNDS:-3}

bench-nats: $(VENV)/.ready  ## messages per second of NATS JetStream's sources and sink beside the client alone, on a real server (RECORDS=100000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_nats.py --records $${RECORDS:-100000} --rounds $${ROUNDS:-3}

bench-mqtt: $(VENV)/.ready  ## messages per second of MqttSource and MqttSink beside the client alone, on a real broker (RECORDS=50000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_mqtt.py --records $${RECORDS:-50000} --rounds $${ROUNDS:-3}

bench-redis: $(VENV)/.ready  ## entries per second of Redis' sources and sink beside the client alone, on a real server (RECORDS=200000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_redis.py --records $${RECORDS:-200000} --rounds $${ROUNDS:-3}

bench-folder: $(VENV)/.ready  ## FolderSource beside FileStreamSource (lines) and SparkSource (CSV): rates and CPU seconds; latency, and many files (RECORDS=1000000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_folder_source.py --records $${RECORDS:-1000000} --rounds $${ROUNDS:-3}
	$(BIN)/python tests/benchmarks/bench_folder_tail.py

bench-plugins: $(VENV)/.ready  ## Java plugins here beside the same in Kafka Connect, and the twelve checks (RECORDS=2000000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_plugins.py --records $${RECORDS:-2000000} --rounds $${ROUNDS:-3} --checks

bench-cdc: $(VENV)/.ready  ## change data capture of PostgreSQL and MariaDB beside Debezium in Kafka Connect (EVENTS=400000 ROUNDS=3)
	$(BIN)/python tests/benchmarks/bench_cdc_rows.py
	$(BIN)/python tests/benchmarks/bench_cdc.py --events $${EVENTS:-400000} --rounds $${ROUNDS:-3}
	$(BIN)/python tests/benchmarks/bench_cdc_latency.py --rounds $${ROUNDS:-3}

bench-rest: $(VENV)/.ready  ## REST API with 1 to 1,000 connectors, alone and in Airflow (SERVERS="rest airflow connect" adds Kafka Connect)
	$(BIN)/python tests/benchmarks/bench_rest.py --servers $${SERVERS:-rest airflow}

bench-rest-versions: $(VENV)/.ready  ## the recorded conversation with the REST API, answered by a commit and by this tree in turn (OLD=main ROUNDS=40)
	$(BIN)/python tests/benchmarks/bench_rest_versions.py $${OLD:-main} --rounds $${ROUNDS:-40}

bench-migrate: $(VENV)/.ready  ## moves of 20 connectors under load between Kafka Connect and a stack: seconds, standstills (CONNECTORS=20 PARALLEL=4)
	$(BIN)/python tests/benchmarks/bench_migrate.py --connectors $${CONNECTORS:-20} --parallel $${PARALLEL:-4}
	$(BIN)/python tests/benchmarks/bench_migrate.py --connectors 4 --parallel 2 --own
	$(BIN)/python tests/benchmarks/bench_migrate.py --take-over

bench-airflow: $(VENV)/.ready  ## seconds of a start, a pause, a resume, a scheduled run; 50 scheduled connectors; 1,000 that wait
	$(BIN)/python tests/benchmarks/bench_airflow_pause.py
	$(BIN)/python tests/benchmarks/bench_airflow_batch.py
	$(BIN)/python tests/benchmarks/bench_airflow_batch.py --warm --runs 30
	$(BIN)/python tests/benchmarks/bench_airflow_start.py
	$(BIN)/python tests/benchmarks/bench_airflow_many.py
	$(BIN)/python tests/benchmarks/bench_airflow_parse.py

bench-observability: $(VENV)/.ready  ## processor time of a task that scrapes 5,000 series each second (SERIES=5000)
	$(BIN)/python tests/benchmarks/bench_observability.py --series $${SERIES:-5000}

bench-many: $(VENV)/.ready  ## 1, 10, 50 and 200 small connectors in one application beside Kafka Connect: memory, starts, latency
	$(BIN)/python tests/benchmarks/bench_many.py
	$(BIN)/python tests/benchmarks/bench_many_loaded.py

bench-scaling: $(VENV)/.ready  ## records per second with 1, 2 and 4 tasks over two Spark workers; 50 and 200 idle tasks on one driver
	$(BIN)/python tests/benchmarks/bench_scaling.py
	$(BIN)/python tests/benchmarks/bench_many_tasks.py --tasks 50 200

clean: down  ## end the stack and remove its data and the virtual environment
	rm -rf .sluiceway build dist $(VENV)
