# Everything that is done in this repository by hand, by CI and by the GitHub workflows. `make help` lists it.
SHELL := /bin/bash
LAB   := $(CURDIR)/bin/lab
# No debug information, and compilers that take memory instead of time, like lab/tools/build.go, whose cache is shared. For a debugger:
# make probe GOFLAGS=
GOFLAGS ?= -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=3GiB'
export GOFLAGS
# Folders of Go modules with tests; the tools that are built from other people's modules have none.
MODULES := . preview tests/charts tests/plugins tests/tree lab lab/tools/argocd lab/tools/standins lab/tools/talos
# Packages with tests that run a Pulumi program.
GRAPH := ./tests/graph ./tests/mocks ./components/... ./stacks

# Tests of lab/kubelet that run real programs. unit runs the others: after the real ones, in one process, some of them fail.
KUBELET_REAL := ^Test(Drain|ExternalSecrets|Kubelets|Mesh|Metadata|SealedSecrets|Storage)_|^TestNode_ThatIsDeleted

# The tests that run in a lab: the commands as they run, and at the end what failed.
# renovate: datasource=go depName=gotest.tools/gotestsum
GOTESTSUM := v1.13.0
LAB_TESTS := SLIPWAY_LAB_COMMAND=$(LAB) go run gotest.tools/gotestsum@$(GOTESTSUM) --format standard-verbose --packages ./tests/e2e -- -count=1

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: lab
lab: $(LAB) ## Rehearse both stacks: up, up again, refresh, destroy; nothing may be left
	$(LAB) run

.PHONY: lab-shell
lab-shell: $(LAB) ## Open a shell in a lab that stays up until lab-clean
	$(LAB) shell

.PHONY: lab-status
lab-status: $(LAB) ## Show the machines and processes of that lab
	$(LAB) status

.PHONY: lab-clean
lab-clean: $(LAB) ## End that lab and remove its folder
	$(LAB) clean

.PHONY: tools
tools: $(LAB) ## Build what the lab runs, as far as it is missing (once; 20 minutes on two cores)
	$(LAB) tools

# Argo CD, which a lab runs behind its pods if it is built.
.PHONY: argo-cd
argo-cd: $(LAB)
	$(LAB) tools argo-cd argo-cd-chart helm kustomize redis

# The lab's Kubernetes in other minor versions: a lab runs each part of a cluster with the program of its minor version, if that is built.
.PHONY: kube-1.35 kube-1.37
kube-1.35 kube-1.37: $(LAB)
	$(LAB) tools $@

.PHONY: test
test: vet unit e2e ## All tests, the end-to-end ones included

.PHONY: unit
unit: ## The tests that need neither a lab nor its tools
	@for m in $(MODULES); do echo "== go test -short ./... ($$m)"; go -C $$m test -short ./... || exit 1; done

.PHONY: graph
graph: ## The graph tests again and again, so that an ordering race shows
	GOMAXPROCS=4 go test -count=50 -timeout 60m $(GRAPH)

.PHONY: e2e
e2e: tools ## The end-to-end tests, in a lab, and those of the lab's own parts on the real programs
	go -C lab test -count=1 ./kube/... ./tools/...
	go -C lab test -count=1 -run '$(KUBELET_REAL)' ./kubelet
	for file in go.mod older.mod; do go -C lab/tools/proxmoxve test -modfile $$file . || exit 1; done
	go -C lab/tools/kube test -vet=off . # vet would read all of Kubernetes
	$(LAB_TESTS) -tags e2e -timeout 75m -skip '^Test(GitOps|Clusters|Mesh|Storage|Lifecycle|Minors|Restore|Resume|Preview|Tutorial|Compare|RealTalos|Record|ArgoCD|Update)'

.PHONY: gitops
gitops: tools ## Flux: owners of components, sources, access, keys, adoption and removal, in four labs, two at a time (about 25 minutes)
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestGitOps'

.PHONY: argocd
argocd: tools argo-cd ## Argo CD: handover, settings, what is stuck, credentials, from one engine to the other, in a lab
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestArgoCD'

.PHONY: clusters
clusters: tools ## Three clusters beside each other, in a lab
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestClusters'

.PHONY: mesh
mesh: tools ## Two clusters in one mesh, a peer that goes and one that comes back, in a lab (about 6 minutes)
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestMesh'

.PHONY: storage
storage: tools ## A provider of storage and its consumer, what fails without a driver, and changes of a provider's nodes, in labs (about 30 minutes)
	$(LAB_TESTS) -tags e2e -timeout 80m -run '^TestStorage'

.PHONY: lifecycle
lifecycle: tools ## Upgrades and other changes of a running cluster under load, in a lab
	$(LAB_TESTS) -tags e2e -timeout 80m -run '^TestLifecycle'

.PHONY: minors
minors: tools kube-1.35 kube-1.37 ## A cluster under load, from Talos 1.12 to 1.14 and Kubernetes 1.35 to 1.37, in a lab
	for minor in 1.35 1.37; do go -C lab/tools/kube test -vet=off -modfile $$minor.mod . || exit 1; done
	$(LAB_TESTS) -tags e2e -timeout 90m -run '^TestMinors'

.PHONY: brackets
brackets: export SLIPWAY_LAB_PROXMOX = older
brackets: tools ## The whole chain and the changes of a cluster with the older Proxmox plugin (about two hours)
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestChain$$'
	$(LAB_TESTS) -tags e2e -timeout 110m -run '^TestLifecycle_AClusterUnderLoadIsChangedInTurns$$'

# One machine, and once two, in QEMU without KVM: two cores and 10 GiB of memory; it should run alone.
.PHONY: real-talos
real-talos: real-talos-tools ## The real Talos in QEMU: killed runs, changes, upgrades, CAs, a worker, a lost machine, destroy (about an hour; needs QEMU)
	$(LAB_TESTS) -tags e2e -timeout 85m -run '^TestRealTalos_TakesChanges'

.PHONY: real-talos-control-planes
real-talos-control-planes: real-talos-tools ## The real Talos: a second control plane joins and goes, and destroy (needs QEMU and more than two cores)
	$(LAB_TESTS) -tags e2e -timeout 75m -run '^TestRealTalos_AControlPlane'

.PHONY: real-talos-tools
real-talos-tools: tools
	$(LAB) tools talos-1.13 talos-1.14 talos-1.14-next talos-1.14-broken

.PHONY: record-talos
record-talos: tools ## What the real Talos answers, which the lab's must answer, recorded anew (about 20 minutes; needs QEMU)
	$(LAB) tools talos-1.12 talos-1.13 talos-1.14
	$(LAB_TESTS) -tags e2e -timeout 90m -run '^TestRecord'

.PHONY: previews
previews: tools ## make preview of changes, on nothing and on the state of a cluster that exists, and what it costs, in a lab
	go -C preview build -trimpath -buildvcs=false -tags charts -o /dev/null . # with its modules, which a lab cannot fetch
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestPreview'

.PHONY: restore
restore: tools ## Rehearsals in four labs: expired certificates, a lost state, lost clusters, and a Proxmox node that is gone
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestRestore'

.PHONY: resume
resume: tools ## Kill runs at more than 50 points, finish each by the next run, and compare what they have made, in a lab
	$(LAB_TESTS) -tags e2e -timeout 90m -run '^TestResume'

.PHONY: update
update: tools ## The cluster of a former commit's program is taken over by this one's, in a lab: no pod and no machine is touched
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestUpdate'

.PHONY: tutorial
tutorial: tools ## The commands of the documents, word for word, what make drift finds, and repositories of slipway new and pulumi new, in a lab
	$(LAB_TESTS) -tags e2e -timeout 75m -run '^TestTutorial'

.PHONY: compare
compare: tools ## The same cluster with Slipway and with Terraform or OpenTofu, Helm and Flux, and the ratio, in a lab
	$(LAB_TESTS) -tags e2e -timeout 60m -run '^TestCompare'

.PHONY: matrix
matrix: tools ## The fault matrix of docs/faults.md, in a lab (about 40 minutes)
	$(LAB_TESTS) -tags matrix -timeout 120m -run TestMatrix

.PHONY: scale
scale: tools ## infra with 5, 20 and 100 nodes in a lab: what preview and up take, in time and memory
	$(LAB_TESTS) -tags matrix -timeout 120m -run TestScale

.PHONY: keep-state
keep-state: tools ## Keep the states that both stacks have after a run in a lab, without secrets, for the graph tests: RELEASE=v1.2.3
	@test -n '$(RELEASE)' || { echo 'keep-state: RELEASE is missing; name the release, as in RELEASE=v1.2.3'; exit 2; }
	@folder=tests/graph/states/$(RELEASE); lab='$(LAB) --name keep-state'; mkdir -p "$$folder" && cp Pulumi.*.yaml "$$folder" || exit 1; \
		trap "$$lab clean" EXIT; for file in Pulumi.*.yaml; do stack=$${file#Pulumi.}; stack=$${stack%.yaml}; \
		$$lab exec -- pulumi up --yes --skip-preview --non-interactive --stack "$$stack" || exit 1; done; \
		for file in Pulumi.*.yaml; do stack=$${file#Pulumi.}; stack=$${stack%.yaml}; \
		$$lab exec -- pulumi stack export --stack "$$stack" | go run ./tests/states > "$$folder/$$stack.json.gz" || exit 1; done

.PHONY: vet
vet: ## gofmt, go vet, and no conflict of a merge left anywhere
	@! git grep -nE '^(<{7}|>{7}) '
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt needed:"; echo "$$out"; exit 1; fi
	@for m in $(MODULES); do go -C $$m vet ./... || exit 1; done
	@for tag in e2e matrix; do go vet -tags $$tag ./tests/e2e || exit 1; done
	@go -C preview vet -tags charts .

.PHONY: lint
lint: ## golangci-lint, with .golangci.yaml
	@for m in $(MODULES); do (cd $$m && golangci-lint run ./...) || exit 1; done

# The folder of an unpacked chart that is in no Go module, such as CoreDNS's: the list of its keys is written, too.
CHART ?=

.PHONY: golden
golden: ## Write the golden files, the reference and the generated tables anew; with the keys of a chart's values: CHART=FOLDER
	cp Pulumi.apps.yaml Pulumi.infra.yaml tests/clusters/samples
	go test ./cluster/machineconfig ./cluster/releases ./cluster/syntax ./cmd/newcluster ./components/cilium/chart ./components/secrets \
		./internal/engines/argocd/handover ./internal/engines/flux/handover ./internal/engines/flux/tree ./internal/health ./internal/health/externalsecrets \
		./internal/health/gate ./internal/health/mesh ./internal/health/own ./internal/health/storage ./internal/health/picture ./stacks/config \
		./tests/e2e/faults -update
	go -C lab test ./fault ./proxmox -update
	go -C lab test ./talos -run TestReal_TheDocument -update
	go -C tests/charts test . -run TestKeys -args -update -from '$(if $(CHART),$(abspath $(CHART)))'
	go -C preview test . -update

# The program that makes pictures: Chromium, or a browser with the same options.
CHROMIUM ?= chromium
.PHONY: pictures
pictures: ## Make the picture in the README anew, of a page that make lab has written, with a browser: PAGE=FILE CHROMIUM=chromium
	@test -f "$(PAGE)" || { echo 'PAGE is no file: make lab prints the path of a page' >&2; exit 1; }
	@mkdir -p docs/pictures; profile=$$(mktemp -d); trap 'rm -rf "$$profile"' EXIT; \
		"$(CHROMIUM)" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$$profile" --window-size=1100,880 \
		--screenshot=docs/pictures/run.png "file://$(abspath $(PAGE))"

.PHONY: config-check
config-check: ## Check all stack files without running anything, or one: STACK=infra, or a file's path
	@mkdir -p bin && go build -o bin/config-check ./cmd/config-check && bin/config-check $(STACK)

# The commit that a change is compared with; folders with charts, NAME-VERSION.tgz, whose manifests are compared; whether missing charts are
# fetched into the first of them; exported states.
BASE   ?= origin/main
CHARTS ?=
FETCH  ?=
STATE  ?=

.PHONY: preview
preview: ## Show what the working tree changes, without cluster and secrets: BASE=origin/main CHARTS=FOLDER FETCH=yes STATE=FOLDER (docs/preview.md)
	@mkdir -p bin && go -C preview build -trimpath -buildvcs=false $(if $(CHARTS),-tags charts) -o ../bin/slipway-preview .
	@bin/slipway-preview -base '$(BASE)' -charts '$(CHARTS)' $(if $(FETCH),-fetch) -state '$(STATE)' -out bin/preview; code=$$?; \
		if [ $$code -lt 2 ]; then cat bin/preview/preview.md; fi; exit $$code

# Without STACK, all stacks with a file in this folder. The exit code is not 0 if a stack differs, and if one could not be looked at. A
# preview asks the API server what it would do. Without the variable, it refuses to answer about a field that another manager has set.
.PHONY: drift
drift: ## Report what differs between the program and what exists, and change nothing: STACK=infra, or all (docs/drift.md)
	@code=0; for stack in $(or $(STACK),$(patsubst Pulumi.%.yaml,%,$(wildcard Pulumi.*.yaml))); do \
		echo "== $$stack"; \
		PULUMI_K8S_ENABLE_PATCH_FORCE=true pulumi preview --refresh --diff --expect-no-changes --suppress-progress --non-interactive \
			--stack "$$stack" || code=1; \
	done; exit $$code

.PHONY: mesh-ca
mesh-ca: ## Print a new CA of a cluster mesh, for: make -s mesh-ca | pulumi config set --secret slipway:meshCA
	@mkdir -p bin && go build -o bin/config-check ./cmd/config-check && bin/config-check mesh-ca

.PHONY: handover-file
handover-file: ## Write the file with which Flux takes over a component, or several: STACK=infra COMPONENT="cilium cert-manager"
	@mkdir -p bin && go build -o bin/config-check ./cmd/config-check && bin/config-check handover $(STACK) $(COMPONENT)

.PHONY: probe
probe: ## Build bin/slipway-probe, to look at a live cluster by hand
	go build -o bin/slipway-probe ./cmd/slipway-probe

.PHONY: platforms
platforms: ## Compile the program for each platform of a release, and keep nothing
	go run ./cmd/release compile

# The command sets Go's flags itself, so that none of this file or of the caller gets into a release.
VERSION ?=
.PHONY: release
release: ## Build the archives, SBOMs and checksums of a release into bin/release: VERSION=v0.1.0
	go run ./cmd/release "$(VERSION)" bin/release

# go build decides by itself whether anything changed.
.PHONY: $(LAB)
$(LAB):
	@go -C lab build -o $@ ./cmd/lab
