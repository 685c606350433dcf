// Package apply applies CustomResourceDefinitions (CRDs) to a cluster: it fetches the manifests, refuses objects that are not CRDs,
// applies all CRDs server-side as field manager "slipway", and waits until each is served. A second run changes only what differs.
package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/probe"
)

// parallel is how many CRDs are applied at a time: each may take the API server a second of CPU.
const parallel = 8

// requestTimeout is how long one request may take, a watch included: a request to a machine that was switched off would otherwise wait for
// minutes.
const requestTimeout = 30 * time.Second

// heartbeat is how often the progress names what is missing.
const heartbeat = 10 * time.Second

// run is one run of a spec.
type run struct {
	spec     crds.Spec
	http     *http.Client
	dynamic  dynamic.Interface
	metadata metadata.Interface
	pause    time.Duration // before the second attempt after a temporary error

	started time.Time
	mu      sync.Mutex // guards to
	to      io.Writer  // progress
}

// Run fetches and applies the CRDs of a valid spec. It applies nothing unless every manifest could be fetched and holds what it should. The
// error holds all problems.
func Run(ctx context.Context, spec crds.Spec, progress io.Writer) (crds.Report, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(spec.Kubeconfig))
	if err != nil {
		return crds.Report{}, errors.New("kubeconfig: is not a valid kubeconfig") // the cause may quote the text
	}
	r := &run{spec: spec, http: newClient(), pause: fetchPause, started: time.Now(), to: progress}
	if err := r.connect(config); err != nil {
		return crds.Report{}, err
	}
	return r.run(ctx)
}

func (r *run) connect(config *rest.Config) error {
	config.UserAgent = "slipway-probe"
	config.Timeout = requestTimeout
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	var err error
	if r.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if r.metadata, err = metadata.NewForConfig(config); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

func (r *run) run(ctx context.Context) (crds.Report, error) {
	limit := time.Duration(r.spec.Timeout)
	ctx, cancel := probe.Within(ctx, limit)
	defer cancel()
	manifests, err := r.load(ctx)
	if err != nil {
		return crds.Report{}, err
	}
	changed, err := r.apply(ctx, manifests)
	if err != nil {
		return crds.Report{}, err
	}
	return r.report(manifests, changed), nil
}

// load fetches and reads all sources at the same time.
func (r *run) load(ctx context.Context) ([]*manifest, error) {
	manifests, problems := make([]*manifest, len(r.spec.Sources)), make([]error, len(r.spec.Sources))
	var all sync.WaitGroup
	for i, source := range r.spec.Sources {
		all.Go(func() {
			content, sum, err := r.fetch(ctx, source)
			if err == nil {
				manifests[i], err = parse(source, content)
			}
			if err != nil {
				problems[i] = fmt.Errorf("%s %s: %w", source.Name, source.Version, err)
				return
			}
			manifests[i].sha256 = sum
			r.say("fetched", "%s %s: %d CRDs in %d KiB", source.Name, source.Version, len(manifests[i].crds), len(content)>>10)
		})
	}
	all.Wait()
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return manifests, unique(manifests)
}

func (r *run) report(manifests []*manifest, changed map[string]bool) crds.Report {
	report := crds.Report{Kind: "crds", Cluster: r.spec.Cluster, Changed: len(changed),
		Took: probe.Duration(time.Since(r.started).Round(time.Millisecond))}
	for _, m := range manifests {
		result := crds.Result{Name: m.source.Name, Version: m.source.Version, URL: m.source.URL, SHA256: m.sha256, LeftOut: m.leftOut}
		for _, crd := range m.crds {
			result.CRDs = append(result.CRDs, crd.GetName())
			if changed[crd.GetName()] {
				result.Changed = append(result.Changed, crd.GetName())
			}
		}
		slices.Sort(result.CRDs)
		slices.Sort(result.Changed)
		report.CRDs += len(result.CRDs)
		report.Sources = append(report.Sources, result)
	}
	return report
}

func (r *run) say(verb, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.to, "%7s  %-7s  %s\n", fmt.Sprintf("%.1fs", time.Since(r.started).Seconds()), verb, fmt.Sprintf(format, args...))
}
