.PHONY: help build release demo test race lint judge engines spark bench bench-scale fuzz clean

PYTHON ?= python3
SHARED ?= ../shared
VENV   := .venv
DEMO   ?= /tmp/icefs-demo
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

help:     ## list the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 12
build:    ## build ./icefs
	go build -o icefs ./cmd/icefs
release:  ## static binaries for linux/amd64 and linux/arm64, with what goes beside them, in dist/
	./.ci/release dist
demo: build ## make a demo warehouse, mount it and show real commands on it
	./internal/demo/demo.sh ./icefs $(DEMO)
test: build ## all tests, real mounts and DuckDB included
	cd internal/engines && go test ./...
	go test ./...
race:     ## all tests under the race detector
	go test -race ./...
lint:     ## gofmt, vet, staticcheck, package rule
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	cd internal/engines && go vet ./...
	go run $(STATICCHECK) ./...
	go test ./cmd/icefs -run '^TestImports$$'
$(VENV)/.ready: internal/engines/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement $<
	touch $@
judge: build ## compare every snapshot of the tables in ../shared with recorded rows
	@test -d $(SHARED)/judge || { echo "make judge needs the judge and its tables in $(SHARED) (SHARED=DIR for another place)"; exit 1; }
	test -x $(VENV)/judge/bin/python || $(PYTHON) -m venv $(VENV)/judge
	$(VENV)/judge/bin/pip install --quiet --requirement $(SHARED)/judge/requirements.txt
	$(VENV)/judge/bin/python $(SHARED)/judge/judge.py --passes 2 --icefs ./icefs --tables $(SHARED)/tables
engines: build $(VENV)/.ready ## read the tables with pyarrow, DuckDB, Polars, DataFusion and fastparquet
	$(VENV)/bin/python internal/engines/engines.py --icefs ./icefs --tables $(or $(wildcard $(SHARED)/tables),testdata)
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
bench: build $(VENV)/bench/.ready bench/data/lineitem.ids ## time DuckDB, pyarrow and Polars over icefs against the raw files and iceberg_scan
	$(VENV)/bench/bin/python bench/run.py --icefs ./icefs --table bench/data/lineitem --ids bench/data/lineitem.ids
bench-scale: ## pairing and planning against iceberg-go, long histories, live ranges: ratios, in one run
	go test ./bench/scale -run '^$$' -bench . -benchtime 1x -timeout 60m
	go test ./deletes -run '^$$' -bench '^Benchmark(LiveRanges|ContainerThreshold)$$' -benchtime 1x -timeout 30m
fuzz:     ## every fuzz target for a minute
	./.ci/fuzz 60s
clean:    ## remove what was built
	rm -rf icefs dist $(VENV) $(VENV)-spark
