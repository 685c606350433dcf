// Package crds is `slipway-probe crds`, which applies CustomResourceDefinitions (CRDs) to a cluster: it fetches the manifests, refuses
// objects that are not CRDs, applies all CRDs server-side as field manager "slipway", and waits until each is served. A second run changes
// only what differs.
package crds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
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
	spec  Spec
	http  *http.Client
	api   *kubeapi.Client
	pause time.Duration // before the second attempt to fetch a manifest

	*probe.Progress
}

// Run fetches and applies the CRDs of a valid spec. It applies nothing unless every manifest was fetched and holds what it should. The
// error holds all problems.
func Run(ctx context.Context, spec Spec, progress io.Writer) (Report, error) {
	api, err := kubeapi.New([]byte(spec.Kubeconfig), requestTimeout)
	if err != nil {
		return Report{}, err
	}
	r := &run{spec: spec, http: newClient(), api: api, pause: fetchPause, Progress: probe.Begin(progress)}
	return r.run(ctx)
}

func (r *run) run(ctx context.Context) (Report, error) {
	ctx, cancel := probe.Within(ctx, time.Duration(r.spec.Timeout))
	defer cancel()
	manifests, err := r.load(ctx)
	if err != nil {
		return Report{}, err
	}
	changed, err := r.apply(ctx, manifests)
	if err != nil {
		return Report{}, err
	}
	return r.report(manifests, changed), nil
}

// load fetches and reads all sources at the same time.
func (r *run) load(ctx context.Context) ([]*manifest, error) {
	manifests, problems := make([]*manifest, len(r.spec.Sources)), make([]error, len(r.spec.Sources))
	probe.Each(r.spec.Sources, func(i int, source Source) {
		content, sum, err := r.fetch(ctx, source)
		if err == nil {
			manifests[i], err = parse(source, content)
		}
		if err != nil {
			problems[i] = fmt.Errorf("%s %s: %w", source.Name, source.Version, err)
			return
		}
		manifests[i].sha256 = sum
		r.Say("fetched %s %s: %d CRDs in %d KiB", source.Name, source.Version, len(manifests[i].crds), len(content)>>10)
	})
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return manifests, unique(manifests)
}

func (r *run) report(manifests []*manifest, changed map[string]bool) Report {
	report := Report{Head: probe.Head{Kind: "crds", Cluster: r.spec.Cluster, Took: r.Took()}, Changed: len(changed)}
	for _, m := range manifests {
		result := Result{Name: m.source.Name, Version: m.source.Version, URL: m.source.URL, SHA256: m.sha256, LeftOut: m.leftOut}
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
