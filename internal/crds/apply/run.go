// Package apply gives a cluster its CustomResourceDefinitions: it fetches the manifests, refuses what is no definition,
// applies all of them on the server's side as field manager "slipway", and waits until each is served. Run as often as
// one likes, it changes what differs. It imports no Pulumi; slipway-probe runs it.
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

// parallel is how many definitions are applied at a time: each may take the API server a second of CPU.
const parallel = 8

// requestTimeout is how long one request may take, a watch included: one to a machine that was switched off would be
// believed in for minutes.
const requestTimeout = 30 * time.Second

// heartbeat is how often a wait says what it still waits for.
const heartbeat = 10 * time.Second

// run is one application of a specification.
type run struct {
	spec     crds.Spec
	http     *http.Client
	dynamic  dynamic.Interface
	metadata metadata.Interface
	pause    time.Duration // before the second attempt of something that failed for a reason that passes

	started time.Time
	mu      sync.Mutex // guards to
	to      io.Writer  // progress
}

// Run does what the package says. Progress goes to progress; the error holds all problems. Nothing is applied unless
// every manifest is there and as it should be.
func Run(ctx context.Context, spec crds.Spec, progress io.Writer) (crds.Report, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(spec.Kubeconfig))
	if err != nil {
		return crds.Report{}, errors.New("kubeconfig: is not one that can be used") // its own words quote the text
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
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
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
			r.say("fetched", "%s %s: %d definitions in %d KiB", source.Name, source.Version, len(manifests[i].definitions), len(content)>>10)
		})
	}
	all.Wait()
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return manifests, unique(manifests)
}

func (r *run) report(manifests []*manifest, changed map[string]bool) crds.Report {
	report := crds.Report{Kind: "crds", Cluster: r.spec.Cluster, Changed: len(changed), Took: probe.Duration(time.Since(r.started).Round(time.Millisecond))}
	for _, m := range manifests {
		result := crds.Result{Name: m.source.Name, Version: m.source.Version, URL: m.source.URL, SHA256: m.sha256, LeftOut: m.leftOut}
		for _, definition := range m.definitions {
			result.Definitions = append(result.Definitions, definition.GetName())
			if changed[definition.GetName()] {
				result.Changed = append(result.Changed, definition.GetName())
			}
		}
		slices.Sort(result.Definitions)
		slices.Sort(result.Changed)
		report.Definitions += len(result.Definitions)
		report.Sources = append(report.Sources, result)
	}
	return report
}

func (r *run) say(verb, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.to, "%7s  %-7s  %s\n", fmt.Sprintf("%.1fs", time.Since(r.started).Seconds()), verb, fmt.Sprintf(format, args...))
}
