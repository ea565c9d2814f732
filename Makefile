.PHONY: help build systemd demo test race stress lint judge judge-toggles engines spark stores stores-s3 stores-glue stores-hive stores-gcs stores-azure stores-s3-tables bench bench-text bench-stores bench-scale fuzz release stores-catalogs vuln fuzz-long soak clean

PYTHON ?= python3
SHARED ?= ../shared
VENV   := .venv
DEMO   ?= /tmp/icefs-demo
# Ways of making views that judge-toggles turns off in turn, and the tables that have something of each.
TOGGLES ?= splice=off coalesce=off pages=off splice=off,coalesce=off kernel=off cache=off
TOGGLED ?= codecs,types_v2,types_v3,types_java_v2,v3_dv,v2_pos,v2_eq,eq_part,schema_evo,many_files,part_identity,avro_data,variant_v3,no_cols,empty_rows
NESSIE := 0.108.8
MOTO := 5.2.5
FAKEGCS := v1.56.1
AZURITE := 3.35.0
SOAK ?= 30m
CATALOGS ?= sqlite,postgres,rest
NESSIE_JAVA ?= java
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

help:     ## list the targets
	@grep -E '^[a-z0-9-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 12
build:    ## build ./icefs
	go build -o icefs ./cmd/icefs
release:  ## static binaries for linux/amd64 and linux/arm64, with what goes beside them, in dist/
	./.ci/release dist
demo: build ## make a demo warehouse, mount it and show real commands on it
	./internal/demo/demo.sh ./icefs $(DEMO)
test: build ## all tests, real mounts and DuckDB included
	cd internal/engines && go test ./...
	go test ./...
	go test -tags nogcs,noazure,noglue,nohive ./cmd/icefs -run '^TestLeftOut$$'
race:     ## all tests under the race detector
	go test -race ./...
stress:   ## 64 random readers of every kind of view for a minute
	ICEFS_STRESS=60s go test ./cmd/icefs -run '^TestRandomReaders$$' -count 1 -v
soak: build $(VENV)/.ready ## readers of many kinds read all tables for SOAK (30m) under the race detector: no wrong byte, no growth
	CGO_ENABLED=1 go build -race -o $(VENV)/icefs-race ./cmd/icefs
	$(VENV)/bin/python internal/soak/soak.py --icefs ./icefs --race $(VENV)/icefs-race --tables $(or $(wildcard $(SHARED)/tables),testdata) --duration $(SOAK)
systemd:  ## the unit, and a line of fstab, under a systemd of its own (as root; some ten seconds)
	CGO_ENABLED=0 go build -o icefs ./cmd/icefs
	./.ci/systemd ./icefs testdata/warehouse
lint:     ## gofmt, vet, staticcheck, package rule
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	go vet -tags nogcs,noazure,noglue,nohive ./cmd/icefs ./internal/source/... ./internal/warehouse
	cd internal/engines && go vet ./...
	go run $(STATICCHECK) ./...
	go test ./cmd/icefs -run '^TestImports$$'
vuln:     ## known vulnerabilities in what icefs is built from (VULNDB=DIR: a checkout of golang/vulndb, for vuln.go.dev)
	test -z "$(VULNDB)" || ./.ci/vulndb $(VULNDB) $(VENV)/vulndb
	go run $(GOVULNCHECK) $(if $(VULNDB),-db file://$(abspath $(VENV))/vulndb) ./...
	cd internal/engines && go run $(GOVULNCHECK) $(if $(VULNDB),-db file://$(abspath $(VENV))/vulndb) ./...
$(VENV)/.ready: internal/engines/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement $<
	touch $@
judge: build ## compare every snapshot of the tables in ../shared with recorded rows
	@test -d $(SHARED)/judge || { echo "make judge needs the judge and its tables in $(SHARED) (SHARED=DIR for another place)"; exit 1; }
	test -x $(VENV)/judge/bin/python || $(PYTHON) -m venv $(VENV)/judge
	$(VENV)/judge/bin/pip install --quiet --requirement $(SHARED)/judge/requirements.txt
	$(VENV)/judge/bin/python $(SHARED)/judge/judge.py --passes 2 --icefs ./icefs --tables $(SHARED)/tables
$(VENV)/bin/versitygw:
	GOBIN=$(abspath $(VENV))/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
stores-s3: build $(VENV)/bin/versitygw ## read tables from a real S3 store on this machine, also when it fails now and then
	test ! -d $(SHARED)/judge || test -x $(VENV)/judge/bin/python || $(PYTHON) -m venv $(VENV)/judge
	test ! -d $(SHARED)/judge || $(VENV)/judge/bin/pip install --quiet --requirement $(SHARED)/judge/requirements.txt
	ICEFS_OUTAGE=1 go test ./cmd/icefs -run '^TestLongOutage$$' -count 1
	VERSITYGW=$(abspath $(VENV))/bin/versitygw PYTHON=$(VENV)/judge/bin/python ./bench/stores.sh ./icefs $(wildcard $(SHARED))
judge-toggles: build $(VENV)/.ready ## judge, and engines, on some tables with each way of making views turned off
	@test -x $(VENV)/judge/bin/python || { echo "run make judge first"; exit 1; }
	for off in $(TOGGLES); do echo "== $$off"; \
	  $(VENV)/judge/bin/python $(SHARED)/judge/judge.py --icefs ./icefs --tables $(SHARED)/tables --only '$(TOGGLED)' --mount-args "--layout-options $$off" || exit 1; \
	  $(VENV)/bin/python internal/engines/engines.py --icefs ./icefs --tables $(SHARED)/tables --only '$(TOGGLED)' --mount-args "--layout-options $$off" || exit 1; \
	done
	$(VENV)/judge/bin/python $(SHARED)/judge/judge.py --icefs ./icefs --tables $(SHARED)/tables --only '$(TOGGLED)' --mount-args "--memory 8GiB --cache-size 100GiB"
engines: build $(VENV)/.ready ## read the tables with pyarrow, DuckDB, Polars, DataFusion, fastparquet, and as text with Python and pandas
	$(VENV)/bin/python internal/engines/engines.py --icefs ./icefs --tables $(or $(wildcard $(SHARED)/tables),testdata)
	$(VENV)/bin/python internal/engines/text.py --icefs ./icefs --tables $(or $(wildcard $(SHARED)/tables),testdata)
$(VENV)-spark/.ready: internal/engines/spark-requirements.txt
	$(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/pip install --quiet --requirement $<
	touch $@
spark: build $(VENV)-spark/.ready ## read the tables with Apache Spark (needs Java 17; ONLY=GLOBS for some)
	$(VENV)-spark/bin/python internal/engines/spark.py --icefs ./icefs --tables $(or $(wildcard $(SHARED)/tables),testdata) --only '$(or $(ONLY),*)'
$(VENV)/bench/.ready: bench/requirements.txt
	$(PYTHON) -m venv $(VENV)/bench
	$(VENV)/bench/bin/pip install --quiet --requirement $<
	touch $@
bench/data/lineitem.ids:
	rm -rf bench/data/lineitem
	mkdir -p bench/data
	go run ./bench/lineitem -percent 1,6.1,7,10,25 bench/data/lineitem > $@.part
	mv $@.part $@
bench: build $(VENV)/bench/.ready bench/data/lineitem.ids ## time work over icefs against the raw files and iceberg_scan (SECTION=NAMES for some)
	$(VENV)/bench/bin/python bench/run.py --icefs ./icefs --section '$(SECTION)'
bench/data/history.ids:
	rm -rf bench/data/history
	mkdir -p bench/data
	go run ./bench/lineitem -history 300 -rows 10000 bench/data/history > $@.part
	mv $@.part $@
bench/data/links.ids:
	rm -rf bench/data/links
	mkdir -p bench/data
	go run ./bench/lineitem -links 63 -rows 750000 bench/data/links > $@.part
	mv $@.part $@
bench-text: build $(VENV)/bench/.ready bench/data/lineitem.ids bench/data/history.ids bench/data/links.ids ## time CSV and JSON Lines against DuckDB's COPY
	$(VENV)/bench/bin/python bench/text.py --icefs ./icefs --table bench/data/lineitem --ids bench/data/lineitem.ids --history bench/data/history --links bench/data/links
bench-stores: build $(VENV)/bench/.ready $(VENV)/bin/versitygw bench/data/lineitem.ids ## requests, bytes and time of queries over an S3 store against DuckDB's iceberg_scan
	go build -o $(VENV)/front ./bench/front
	$(VENV)/bench/bin/python bench/remote.py --icefs ./icefs --front $(VENV)/front --gateway $(VENV)/bin/versitygw --table bench/data/lineitem --ids bench/data/lineitem.ids
bench-scale: ## pairing and planning against iceberg-go, long histories, live ranges: ratios, in one run
	go test ./bench/scale -run '^$$' -bench . -benchtime 1x -timeout 60m
	go test ./deletes -run '^$$' -bench '^Benchmark(LiveRanges|ContainerThreshold)$$' -benchtime 1x -timeout 30m
fuzz:     ## every fuzz target for a minute
	./.ci/fuzz 60s
fuzz-long: ## every fuzz target for ten minutes, JOBS of them side by side (default 1)
	./.ci/fuzz 10m
$(VENV)/jars/.ready: internal/stores/pom.xml
	mkdir -p $(VENV)/jars
	mvn -q -f $< dependency:copy-dependencies -DoutputDirectory=$(abspath $(VENV))/jars/rest
	mvn -q dependency:copy -Dartifact=org.projectnessie.nessie:nessie-quarkus:$(NESSIE):jar:runner -DoutputDirectory=$(abspath $(VENV))/jars/nessie
	touch $@
$(VENV)/jars/hive/.ready: internal/stores/hive/pom.xml
	mvn -q -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(VENV))/jars/hive
	touch $@
$(VENV)/bin/fake-gcs-server:
	GOBIN=$(abspath $(VENV))/bin go install github.com/fsouza/fake-gcs-server@$(FAKEGCS)
$(VENV)/azurite/.ready:
	npm install --silent --no-save --prefix $(VENV)/azurite azurite@$(AZURITE)
	touch $@
$(VENV)/moto/.ready:
	$(PYTHON) -m venv $(VENV)/moto
	$(VENV)/moto/bin/pip install --quiet 'moto[server,glue]==$(MOTO)'
	touch $@
$(VENV)/judge/.ready:
	test -x $(VENV)/judge/bin/python || $(PYTHON) -m venv $(VENV)/judge
	$(VENV)/judge/bin/pip install --quiet --requirement $(SHARED)/judge/requirements.txt
	touch $@
stores: stores-s3 stores-catalogs ## real object stores and catalogs on this machine
JUDGE_CATALOGS = $(VENV)/judge/bin/python internal/stores/catalogs.py --icefs ./icefs --tables $(SHARED)/tables --judge $(SHARED)/judge/judge.py --jars $(VENV)/jars --gateway $(VENV)/bin/versitygw --only '$(or $(ONLY),*)'
stores-catalogs: build $(VENV)/judge/.ready $(VENV)/jars/.ready $(VENV)/bin/versitygw ## judge the tables as real catalogs name them, also in an S3 store (needs Java 17, Maven, PostgreSQL; ONLY=GLOBS for some; CATALOGS=nessie needs Java 21)
	$(JUDGE_CATALOGS) --catalogs $(CATALOGS) --nessie-java $(NESSIE_JAVA)
stores-glue: build $(VENV)/judge/.ready $(VENV)/moto/.ready $(VENV)/bin/versitygw ## judge the tables as AWS Glue names them, spoken by moto
	$(JUDGE_CATALOGS) --catalogs glue --moto $(VENV)/moto/bin/moto_server
stores-hive: build $(VENV)/judge/.ready $(VENV)/jars/hive/.ready $(VENV)/bin/versitygw ## judge the tables as a Hive metastore names them (needs Java 17 and Maven)
	$(JUDGE_CATALOGS) --catalogs hive
JUDGE_BUCKET = $(VENV)/judge/bin/python internal/stores/buckets.py --icefs ./icefs --tables $(SHARED)/tables --judge $(SHARED)/judge/judge.py --only '$(or $(ONLY),*)'
stores-s3-tables: build $(VENV)/judge/.ready $(VENV)/bin/versitygw ## judge all tables in one bucket of versitygw
	$(JUDGE_BUCKET) --store s3 --server $(VENV)/bin/versitygw
stores-gcs: build $(VENV)/judge/.ready $(VENV)/bin/fake-gcs-server ## judge all tables in a bucket of fake-gcs-server
	$(JUDGE_BUCKET) --store gcs --server $(VENV)/bin/fake-gcs-server
stores-azure: build $(VENV)/judge/.ready $(VENV)/azurite/.ready ## judge all tables in a container of Azurite (needs Node.js)
	$(JUDGE_BUCKET) --store azure --server $(VENV)/azurite/node_modules/.bin/azurite-blob
clean:    ## remove what was built
	rm -rf icefs dist $(VENV) $(VENV)-spark
