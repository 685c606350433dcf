package gitops

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// DefaultComponents are the controllers of an instance that names none: what it takes to fetch, apply and install
// charts. Add notification-controller for webhooks and alerts.
var DefaultComponents = []string{"source-controller", "kustomize-controller", "helm-controller"}

// DefaultInterval is how often a sync that names no interval looks for changes.
const DefaultInterval = time.Minute

// Flux is the distribution that flux-operator installs.
type Flux struct {
	Version    string   // exact version or range, such as 2.9.x; required
	Registry   string   // registry and path of the controllers' images, such as ghcr.io/fluxcd; required
	Components []string // controllers; none means DefaultComponents
}

// Sync is what Flux applies.
type Sync struct {
	URL        string        // https URL of the Git repository, without credentials; required
	Branch     string        // required
	Path       string        // folder in the repository, relative; required
	PullSecret string        // Secret in Namespace with username and password; required
	Interval   time.Duration // how often Flux looks for changes; 0 means DefaultInterval
}

// ref is the branch as FluxInstance names it.
func (s Sync) ref() string { return "refs/heads/" + s.Branch }

func (s Sync) validate() error {
	var problems []error
	switch u, err := url.Parse(s.URL); {
	case err != nil || u.Host == "" || u.Scheme != "https":
		problems = append(problems, errors.New("sync.url: is not an https URL; give the repository's"))
	case u.User != nil:
		problems = append(problems, errors.New("sync.url: has credentials in it; give them as the pull secret"))
	}
	for _, field := range []struct{ name, value string }{{"branch", s.Branch}, {"path", s.Path}, {"pullSecret", s.PullSecret}} {
		if field.value == "" {
			problems = append(problems, fmt.Errorf("sync.%s: missing; give one", field.name))
		}
	}
	if strings.HasPrefix(s.Branch, "refs/") {
		problems = append(problems, fmt.Errorf("sync.branch: %s is a ref; give the branch's name alone", s.Branch))
	}
	if strings.HasPrefix(s.Path, "/") {
		problems = append(problems, fmt.Errorf("sync.path: %s is absolute; give it from the repository's root", s.Path))
	}
	if s.Interval < 0 {
		problems = append(problems, fmt.Errorf("sync.interval: %s is negative; give a duration such as 1m", s.Interval))
	}
	return errors.Join(problems...)
}

func (f Flux) validate() error {
	var problems []error
	for _, field := range []struct{ name, value string }{{"version", f.Version}, {"registry", f.Registry}} {
		if field.value == "" {
			problems = append(problems, fmt.Errorf("flux.%s: missing; give one", field.name))
		}
	}
	return errors.Join(problems...)
}

// rootSubstitution lets the root Kustomization, and with it every object of the cluster's own folder, use the cluster
// settings as ${CLUSTER_NAME} and so on. It is a patch, for the operator makes that Kustomization from the sync.
const rootSubstitution = `- op: add
  path: /spec/postBuild
  value:
    substituteFrom:
      - kind: ConfigMap
        name: ` + SettingsName + `
`

// quickDependencies makes a Kustomization that depends on another one look again after 5 s instead of Flux's 30 s, which
// every bootstrap would otherwise wait out once for each step of the tree.
const quickDependencies = `- op: add
  path: /spec/template/spec/containers/0/args/-
  value: --requeue-dependency=5s
`

// newInstance registers the FluxInstance, from which the operator makes the controllers and the sync.
func newInstance(ctx *pulumi.Context, name string, flux Flux, sync Sync, opts ...pulumi.ResourceOption) (*apiextensions.CustomResource, error) {
	components := flux.Components
	if len(components) == 0 {
		components = DefaultComponents
	}
	interval := sync.Interval
	if interval == 0 {
		interval = DefaultInterval
	}
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String("fluxcd.controlplane.io/v1"),
		Kind:       pulumi.String("FluxInstance"),
		Metadata: metav1.ObjectMetaArgs{
			Name:      pulumi.String(InstanceName),
			Namespace: pulumi.String(Namespace),
			// The handover judges it, with a report on what is stuck; the provider's own wait could only time out.
			Annotations: pulumi.StringMap{"pulumi.com/skipAwait": pulumi.String("true")},
		},
		OtherFields: kubernetes.UntypedArgs{"spec": pulumi.Map{
			"distribution": pulumi.Map{
				"version":  pulumi.String(flux.Version),
				"registry": pulumi.String(flux.Registry),
			},
			"components": pulumi.ToStringArray(components),
			"cluster": pulumi.Map{
				"type":          pulumi.String("kubernetes"),
				"domain":        pulumi.String("cluster.local"),
				"networkPolicy": pulumi.Bool(true),
			},
			"sync": pulumi.Map{
				"kind":       pulumi.String("GitRepository"),
				"name":       pulumi.String(SyncName),
				"url":        pulumi.String(sync.URL),
				"ref":        pulumi.String(sync.ref()),
				"path":       pulumi.String(sync.Path),
				"pullSecret": pulumi.String(sync.PullSecret),
				"interval":   pulumi.String(interval.String()),
			},
			"kustomize": pulumi.Map{"patches": pulumi.Array{
				patch("Kustomization", SyncName, rootSubstitution),
				patch("Deployment", "(kustomize-controller|helm-controller)", quickDependencies),
			}},
		}},
	}, opts...)
}

// patch is a JSON patch for the objects of a kind whose name matches.
func patch(kind, name, operations string) pulumi.Map {
	return pulumi.Map{
		"target": pulumi.Map{"kind": pulumi.String(kind), "name": pulumi.String(name)},
		"patch":  pulumi.String(operations),
	}
}
