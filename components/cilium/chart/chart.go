// Package chart turns a Helm chart into Kubernetes manifests without Helm's command, release storage or cluster access: it
// fetches the chart, renders it with Helm's own engine, and writes the objects as Helm would create them.
package chart

import (
	"bytes"
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Chart is a Helm chart in memory.
type Chart struct{ chart *helmchart.Chart }

// Read reads a chart archive, as a chart repository serves it.
func Read(archive []byte) (*Chart, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("chart archive: %w", err)
	}
	return &Chart{chart: loaded}, nil
}

// Version is the chart's own, without a v.
func (c *Chart) Version() string { return c.chart.Metadata.Version }
