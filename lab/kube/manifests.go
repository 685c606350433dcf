package kube

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"golang.org/x/mod/semver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

//go:embed manifests/*.yaml
var bootstrapFiles embed.FS

// manifests are what a control plane applies.
type manifests struct {
	cluster config.ClusterConfig
	// talosAPI tells whether pods get access to Talos's API.
	talosAPI bool
	// downloaded are the contents of manifests by URL, by Talos's id for them, e.g. "99-https://example.com/x.yaml".
	downloaded map[string][]byte
	// inventory tells whether Talos keeps a list of the applied objects, as it does since 1.13.
	inventory bool
	// report, if not nil, receives each error of Talos's controller that applies manifests.
	report func(error)
}

// manifestsOf returns the manifests of a configuration, as a version of Talos applies them.
func manifestsOf(cfg config.Config, talos string, downloaded map[string][]byte) manifests {
	return manifests{cluster: cfg.Cluster(), talosAPI: cfg.Machine().Features().KubernetesTalosAPIAccess().Enabled(), downloaded: downloaded,
		inventory: semver.Compare(semver.MajorMinor(talos), "v1.13") >= 0}
}

// manifest is a list of objects under the id that Talos gives it.
type manifest struct {
	id      string
	objects []*unstructured.Unstructured
}

// rendered are the manifests: Talos's own, then the others by their id. A manifest that cannot be read is in err, and the
// others are returned. kube-proxy and Flannel are not modelled; unmodelled lists which of them the configuration asks for.
func (m manifests) rendered() (list []manifest, unmodelled []string, err error) {
	cfg := m.cluster
	rbac, err := embedded("rbac")
	if err != nil {
		return nil, nil, err
	}
	list = append(list,
		manifest{"01-csr-node-bootstrap", rbac[:1]}, manifest{"01-csr-approver-role-binding", rbac[1:2]},
		manifest{"01-csr-renewal-role-binding", rbac[2:3]}, manifest{"11-talos-node-rbac-template", rbac[3:]},
		manifest{"00-kubelet-bootstrapping-token", []*unstructured.Unstructured{bootstrapToken(cfg.Token())}},
	)
	if cfg.CoreDNS().Enabled() {
		dns, err := coreDNS(cfg)
		if err != nil {
			return nil, nil, err
		}
		service := slices.IndexFunc(dns, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Service" })
		list = append(list, manifest{"11-core-dns", dns[:service]}, manifest{"11-core-dns-svc", dns[service:]})
	}
	if m.talosAPI {
		account, err := embedded("talos-service-account-crd")
		if err != nil {
			return nil, nil, err
		}
		list = append(list, manifest{"13-talos-service-account-crd", account})
	}
	if cfg.Proxy().Enabled() {
		unmodelled = append(unmodelled, "kube-proxy (cluster.proxy)")
	}
	if cni := cfg.Network().CNI().Name(); cni != "none" && cni != "custom" {
		unmodelled = append(unmodelled, fmt.Sprintf("CNI %q (cluster.network.cni)", cni))
	}
	contents := maps.Clone(m.downloaded)
	if contents == nil {
		contents = map[string][]byte{}
	}
	for _, inline := range cfg.InlineManifests() {
		contents["99-"+inline.Name()] = []byte(inline.Contents())
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(contents)) {
		objects, err := decode(contents[id])
		if err != nil {
			errs = append(errs, fmt.Errorf("manifest %s: %w", id, err))
			continue
		}
		list = append(list, manifest{id, objects})
	}
	return list, unmodelled, errors.Join(errs...)
}

// objects are the objects that Talos applies after bootstrap, in its order: namespaces, CRDs, the others, and among those
// its own, then by the id of their manifest. The other results are those of rendered.
func (m manifests) objects() (objects []*unstructured.Unstructured, unmodelled []string, err error) {
	list, unmodelled, err := m.rendered()
	for _, one := range list {
		objects = append(objects, one.objects...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		if rank(a) < 2 {
			return cmp.Or(rank(a)-rank(b), strings.Compare(a.GetName(), b.GetName()))
		}
		return rank(a) - rank(b)
	})
	return objects, unmodelled, err
}

// Manifests returns the objects that a control plane with this configuration creates, by the id of their manifest.
// downloaded are the contents of the manifests by URL, by the same ids. A manifest that cannot be read is in the error, and
// the others are returned.
func Manifests(cfg machinery.Provider, downloaded map[string][]byte) (map[string][]map[string]any, error) {
	list, _, err := manifestsOf(cfg, "", downloaded).rendered()
	out := map[string][]map[string]any{}
	for _, one := range list {
		for _, o := range one.objects {
			out[one.id] = append(out[one.id], o.Object)
		}
	}
	return out, err
}

func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

func embedded(name string) ([]*unstructured.Unstructured, error) {
	raw, err := bootstrapFiles.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

// decode reads a stream of YAML documents. It replaces a list by its items.
func decode(raw []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return out, err
		}
		switch {
		case len(o.Object) == 0: // only comments
		case o.IsList():
			if err := o.EachListItem(func(item runtime.Object) error {
				out = append(out, item.(*unstructured.Unstructured))
				return nil
			}); err != nil {
				return out, err
			}
		default:
			out = append(out, o)
		}
	}
}

func coreDNS(cfg config.ClusterConfig) ([]*unstructured.Unstructured, error) {
	objects, err := embedded("coredns")
	if err != nil {
		return nil, err
	}
	ips, err := cfg.Network().DNSServiceIPs()
	if err != nil {
		return nil, fmt.Errorf("cluster.network.serviceSubnets: %w", err)
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Deployment":
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			if err != nil {
				return nil, err
			}
			containers[0].(map[string]any)["image"] = cfg.CoreDNS().Image()
			if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				return nil, err
			}
		case "Service":
			if err := serviceAddresses(o, ips); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

func bootstrapToken(t config.Token) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
		"metadata": object{"name": "bootstrap-token-" + t.ID(), "namespace": "kube-system"},
		"stringData": object{"token-id": t.ID(), "token-secret": t.Secret(), "usage-bootstrap-authentication": "true",
			"auth-extra-groups": "system:bootstrappers:nodes"},
	}}
}

// Talos restarts a controller that has failed after these times.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = time.Minute
)

// applyManifests creates missing objects and does not change others, as Talos does: only `talosctl upgrade-k8s` changes objects, and since
// 1.13 removes objects that no manifest has any more. Like Talos's controller it starts again, later and later, until all exist.
func applyManifests(ctx context.Context, admin *rest.Config, m manifests, log *slog.Logger) error {
	objects, unmodelled, unreadable := m.objects()
	for _, u := range unmodelled {
		log.Warn("not modelled: " + u)
	}
	dyn, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	create := createAll
	if m.inventory {
		create = createListed
	}
	reported := ""
	for backoff := firstBackoff; ; backoff = min(backoff*3/2, maxBackoff) {
		err := errors.Join(unreadable, create(ctx, dyn, mapper, objects))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			return nil
		case err.Error() != reported:
			reported = err.Error()
			log.Warn("bootstrap manifests", "err", err)
		}
		if m.report != nil {
			m.report(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(backoff):
			mapper.Reset()
		}
	}
}

// createAll creates the objects in order, as Talos does: an invalid object is left out, any other error ends the round before the next
// object. An object in a namespace that does not exist is such an error.
func createAll(ctx context.Context, dyn dynamic.Interface, mapper meta.RESTMapper, objects []*unstructured.Unstructured) error {
	var errs []error
	for _, o := range objects {
		client, name, wrong, err := mapped(dyn, mapper, o)
		if err != nil {
			return err
		}
		if wrong != nil {
			errs = append(errs, wrong)
			continue
		}
		if _, err := client.Get(ctx, o.GetName(), metav1.GetOptions{}); err == nil {
			continue
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("error checking resource existence: %w", err)
		}
		_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: "talos"})
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case apierrors.IsMethodNotSupported(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
			errs = append(errs, fmt.Errorf("error creating %s: %w", name, err))
		default:
			return fmt.Errorf("error creating %s: %w", name, err)
		}
	}
	return errors.Join(errs...)
}

// mapped returns the client of an object's resource, and the object's name in messages. wrong is an error that is the object's own; err ends
// the round.
func mapped(dyn dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured) (
	client dynamic.ResourceInterface, name string, wrong, err error,
) {
	kind := o.GroupVersionKind()
	name = fmt.Sprintf("%s/%s/%s/%s", kind.Group, kind.Version, kind.Kind, o.GetName())
	if client, err = clientFor(dyn, mapper, o); err != nil {
		failed := fmt.Errorf("error creating mapping for object %s: %w", name, err)
		if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || meta.IsNoMatchError(err) {
			return nil, name, failed, nil
		}
		return nil, name, nil, failed
	}
	return client, name, nil, nil
}

// clientFor is the client of an object's resource, in its namespace.
func clientFor(dyn dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return dyn.Resource(mapping.Resource), nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return dyn.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}
