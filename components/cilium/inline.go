package cilium

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// InlineManifestName is what the control planes' machine configuration calls Cilium's manifests.
const InlineManifestName = "cilium"

// Chart is Cilium's chart in memory.
type Chart = chart.Chart

// FetchChart gets Cilium's chart from a chart repository; "" means DefaultRepository and ChartVersion. Within one run it
// is fetched once.
func FetchChart(ctx context.Context, repository, version string) (*Chart, error) {
	return chart.Fetch(ctx, or(repository, DefaultRepository), chartName, or(version, ChartVersion))
}

// ReadChart reads a chart archive (.tgz).
func ReadChart(archive []byte) (*Chart, error) { return chart.Read(archive) }

// Manifests renders the chart with these values and certificates, for a cluster of that Kubernetes version, into one YAML
// stream: the objects that the Helm release would have, with Helm's mark of ownership on them.
func (v Values) Manifests(from *Chart, kubernetesVersion string, keys Keys) (string, error) {
	values, err := v.Render(keys)
	if err != nil {
		return "", err
	}
	return v.manifests(from, kubernetesVersion, values)
}

func (v Values) manifests(from *Chart, kubernetesVersion string, values map[string]any) (string, error) {
	release := chart.Release{
		Name: ReleaseName, Namespace: ReleaseNamespace, KubernetesVersion: kubernetesVersion, Values: values,
	}
	if v.GatewayAPI {
		// Served by the time that anything of these manifests asks for it; see RestartOperatorForCRDs.
		release.APIVersions = []string{"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1/GatewayClass"}
	}
	return from.Render(release)
}

// renderFunc renders the chart once the certificates are known.
type renderFunc func(values map[string]any) (string, error)

// renderer gets the chart, and renders it once with certificates that only stand for the real ones: what is wrong with
// chart, values or versions shows before anything is registered. It is nil in ModeHelm.
func (c *CiliumCore) renderer(ctx *pulumi.Context, args *CiliumCoreArgs) (renderFunc, error) {
	if c.mode != ModeInline {
		return nil, nil
	}
	from := args.Chart
	if from == nil {
		var err error
		if from, err = FetchChart(ctx.Context(), args.Repository, args.Version); err != nil {
			return nil, err
		}
	}
	if want := or(args.Version, ChartVersion); from.Version() != want {
		return nil, fmt.Errorf("chart: is version %s, not %s; give the chart of the declared version", from.Version(), want)
	}
	keys := Keys{CA: "CA"}
	for _, what := range args.Values.certificates() {
		*what.of(&keys) = Pair{Certificate: "certificate", Key: "key"}
	}
	if _, err := args.Values.Manifests(from, args.KubernetesVersion, keys); err != nil {
		return nil, err
	}
	return func(values map[string]any) (string, error) {
		return args.Values.manifests(from, args.KubernetesVersion, values)
	}, nil
}

// inline renders the manifests.
func (c *CiliumCore) inline(args *CiliumCoreArgs, render renderFunc, values map[string]any) {
	c.Version = pulumi.String(or(args.Version, ChartVersion)).ToStringOutput()
	rendered := toMap(values).ToMapOutput().ApplyT(func(values map[string]any) (string, error) {
		return render(values)
	}).(pulumi.StringOutput)
	c.InlineManifests = pulumi.ToSecret(rendered).(pulumi.StringOutput)
}
