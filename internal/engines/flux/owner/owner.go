// Package owner decides whether a stack may install Flux in a cluster that possibly has a Flux already. It reads the cluster and
// changes nothing.
//
// A FluxInstance of somebody else is refused: it is never overwritten. A Flux without a FluxInstance, as `flux bootstrap` and `flux
// install` make it, is adopted if it syncs what the stack declares and is not newer: flux-operator takes over its Deployments and CRDs.
// Otherwise it is refused: the root Kustomization would remove everything that this Flux has applied from the other source.
//
// An Argo CD that a stack has made is refused as well: both engines would apply the same objects.
package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/engines"
)

// Declared is what the stack wants to install.
type Declared struct {
	Cluster                string // name of the cluster
	Namespace              string // of Flux
	Instance, Sync         string // names of the FluxInstance, and of its source and root Kustomization
	Version                string // exact, or a range such as 2.x and 2.9.x
	SourceKind, Source     string // resource of the source, such as gitrepositories, and its URL
	Ref, Path, Description string // of the source; Description names the kind for messages
}

// synced is a source or a root Kustomization.
type synced struct {
	Spec struct {
		URL, Endpoint, BucketName, Path string
		Ref                             struct{ Name, Branch, Tag string }
		SourceRef                       struct{ Kind, Name string }
	}
}

// Check returns nil if the stack may install its Flux, and otherwise an error with the obstacle and the remedy.
func Check(ctx context.Context, kubeconfig string, declared Declared) error {
	return engines.Inspect(ctx, kubeconfig, declared.check)
}

func (d Declared) check(in engines.Inspection) error {
	if err := d.argoCD(in); err != nil {
		return err
	}
	instances, err := in.List(engines.FluxInstances)
	if err != nil {
		return err
	}
	for _, instance := range instances {
		if err := d.instance(instance); err != nil {
			return err
		}
	}
	if len(instances) > 0 {
		return nil // of a run that was interrupted, or of a state that was lost
	}
	controllers, err := in.List(engines.FluxControllers)
	if err != nil || len(controllers) == 0 {
		return err
	}
	var problem error
	for _, controller := range controllers {
		if problem = d.controller(controller); problem != nil {
			break // the others say the same
		}
	}
	return errors.Join(problem, d.sync(in))
}

// instance checks that a FluxInstance is the stack's own.
func (d Declared) instance(found metav1.PartialObjectMetadata) error {
	title := "FluxInstance " + found.Namespace + "/" + found.Name
	ours := found.Namespace == d.Namespace && found.Name == d.Instance
	switch of := engines.ClusterOf(found); {
	case of == d.Cluster && ours:
		return nil
	case of != "" && of != d.Cluster:
		return engines.Foreign(title, of, d.Cluster)
	}
	var managers []string
	for _, one := range found.ManagedFields {
		if !slices.Contains(managers, one.Manager) && one.Manager != cluster.FluxOperator {
			managers = append(managers, one.Manager)
		}
	}
	by := ""
	if len(managers) > 0 {
		by = " (by " + strings.Join(managers, ", ") + ")"
	}
	remove := fmt.Sprintf("remove it, which uninstalls Flux and leaves what Flux has applied: kubectl -n %s delete fluxinstance %s",
		found.Namespace, found.Name)
	if !ours {
		return fmt.Errorf("%s was made by somebody else%s, and flux-operator can install only one Flux; %s", title, by, remove)
	}
	return fmt.Errorf("%s was made by somebody else%s, and is not overwritten; let this stack take it over: kubectl -n %s annotate "+
		"fluxinstance %s %s=%s; or %s", title, by, found.Namespace, found.Name, cluster.AnnotationCluster, d.Cluster, remove)
}

// controller checks a Deployment of a Flux without a FluxInstance.
func (d Declared) controller(found metav1.PartialObjectMetadata) error {
	title := "Deployment " + found.Namespace + "/" + found.Name
	const uninstall = "; or remove that Flux, which leaves what it has applied: flux uninstall"
	if found.Namespace != d.Namespace {
		return fmt.Errorf("%s is part of a Flux in another namespace than %s; remove that Flux, which leaves what it has applied: "+
			"flux uninstall --namespace=%s", title, d.Namespace, found.Namespace)
	}
	if runs := found.Labels["app.kubernetes.io/version"]; newer(runs, d.Version) {
		return fmt.Errorf("%s is of Flux %s, and gitops.flux.version is %s, which is older; declare %s or newer%s", title, runs, d.Version,
			strings.TrimPrefix(runs, "v"), uninstall)
	}
	return nil
}

// sync checks that a Flux without a FluxInstance syncs what the stack declares.
func (d Declared) sync(in engines.Inspection) error {
	var root synced
	found, err := in.Read("/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/"+d.Namespace+"/kustomizations/"+d.Sync, &root)
	if err != nil || !found {
		return err // without a root, nothing is pruned
	}
	var source synced
	found, err = in.Read("/apis/source.toolkit.fluxcd.io/v1/namespaces/"+d.Namespace+"/"+d.SourceKind+"/"+d.Sync, &source)
	if err != nil {
		return err
	}
	spec := source.Spec
	var differ []string
	switch ref := cmp.Or(spec.Ref.Name, prefixed("refs/heads/", spec.Ref.Branch), spec.Ref.Tag, spec.BucketName); {
	case !found:
		differ = append(differ, "its source is a "+cmp.Or(root.Spec.SourceRef.Kind, "missing one")+" and not a "+d.Description)
	case cmp.Or(spec.URL, spec.Endpoint) != d.Source:
		differ = append(differ, fmt.Sprintf("its source is %s and not %s", cmp.Or(spec.URL, spec.Endpoint), d.Source))
	case ref != d.Ref:
		differ = append(differ, fmt.Sprintf("its source follows %s and not %s", cmp.Or(ref, "nothing"), d.Ref))
	}
	if path.Clean("/"+root.Spec.Path) != path.Clean("/"+d.Path) {
		differ = append(differ, fmt.Sprintf("its path is %s and not %s", root.Spec.Path, d.Path))
	}
	if len(differ) == 0 {
		return nil
	}
	return fmt.Errorf("Kustomization %s/%s belongs to a Flux that this stack did not make, and would remove what it has applied: %s; declare "+
		"in gitops what it syncs, or remove that Flux, which leaves what it has applied: flux uninstall --namespace=%s",
		d.Namespace, d.Sync, strings.Join(differ, ", "), d.Namespace)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// newer reports whether a version that runs is newer than any that a version or range allows. Patches of the same minor version count,
// too, unless the range allows all of them.
func newer(runs, declared string) bool {
	have, want := strings.Split(strings.TrimPrefix(runs, "v"), "."), strings.Split(declared, ".")
	for i := range min(len(have), len(want)) {
		a, err1 := strconv.Atoi(have[i])
		b, err2 := strconv.Atoi(want[i])
		if err1 != nil || err2 != nil {
			return false // the range allows all from here
		}
		if a != b {
			return a > b
		}
	}
	return false
}
