package kube

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
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

// bootstrapManifests are the objects that Talos applies after bootstrap, in its order: namespaces, CRDs, the others.
// kube-proxy, Flannel and manifests by URL are not modelled; unmodelled lists those that the configuration asks for.
func bootstrapManifests(cfg config.ClusterConfig) (objects []*unstructured.Unstructured, unmodelled []string, err error) {
	rbac, err := embedded("rbac")
	if err != nil {
		return nil, nil, err
	}
	objects = append(objects, rbac...)
	objects = append(objects, bootstrapToken(cfg.Token()))
	if cfg.CoreDNS().Enabled() {
		dns, err := coreDNS(cfg)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, dns...)
	}
	if cfg.Proxy().Enabled() {
		unmodelled = append(unmodelled, "kube-proxy (cluster.proxy)")
	}
	if cni := cfg.Network().CNI().Name(); cni != "none" {
		unmodelled = append(unmodelled, fmt.Sprintf("CNI %q (cluster.network.cni)", cni))
	}
	for _, url := range cfg.ExtraManifestURLs() {
		unmodelled = append(unmodelled, url+" (cluster.extraManifests)")
	}
	var errs []error
	for i, m := range cfg.InlineManifests() {
		list, err := decode([]byte(m.Contents()))
		if err != nil {
			errs = append(errs, fmt.Errorf("cluster.inlineManifests[%d] %q: %w", i, m.Name(), err))
		}
		objects = append(objects, list...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return objects, unmodelled, errors.Join(errs...)
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

// applyManifests creates the objects that do not exist and does not change the others, as Talos does except in an
// upgrade. It retries until all exist, because one of the objects can be the CRD of another.
func applyManifests(ctx context.Context, admin *rest.Config, cfg config.ClusterConfig, log *slog.Logger) error {
	objects, unmodelled, err := bootstrapManifests(cfg)
	if err != nil {
		return err
	}
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
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	reported := ""
	for {
		var errs []error
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			err := create(ctx, dyn, mapper, o)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err))
			}
			return err == nil || apierrors.IsInvalid(err)
		})
		if err := errors.Join(errs...); err != nil && ctx.Err() == nil && err.Error() != reported {
			reported = err.Error()
			log.Warn("bootstrap manifests", "err", err)
		}
		if len(objects) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			mapper.Reset()
		}
	}
}

func create(ctx context.Context, dyn dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = dyn.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
		client = dyn.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: "talos"})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
