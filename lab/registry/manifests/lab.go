package manifests

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Set is a set of the lab's own CRDs. They have the names, kinds and scope of a project's CRDs, but no schemas: any
// content of an object is valid.
type Set struct {
	Name    string
	Version string // of the release that it replaces, without a v
	Group   string
	Served  string   // version of the API
	Kinds   []string // KIND or KIND/PLURAL, namespaced; a leading * means cluster scope

	host, path string
	installs   bool // the project publishes its CRDs inside the manifest of its installation
}

// Lab are the sets that replace those of projects whose sources are not available as Go modules.
func Lab() []Set {
	return []Set{
		{
			Name: "VictoriaMetrics operator", Version: "0.62.0", Group: "operator.victoriametrics.com", Served: "v1beta1",
			Kinds: []string{
				"VMAgent", "VMAlert", "VMAlertmanager", "VMAlertmanagerConfig", "VMAuth", "VMCluster", "VMNodeScrape", "VMPodScrape", "VMProbe",
				"VMRule", "VMScrapeConfig", "VMServiceScrape", "VMSingle", "VMStaticScrape", "VMUser", "VLogs/vlogs",
			},
			host: GitHub, path: "/VictoriaMetrics/operator/releases/download/v0.62.0/crd.yaml",
		},
		{
			Name: "CloudNativePG", Version: "1.27.0", Group: "postgresql.cnpg.io", Served: "v1",
			Kinds: []string{
				"Backup", "Cluster", "*ClusterImageCatalog", "Database", "FailoverQuorum/failoverquorums", "ImageCatalog", "Pooler", "Publication",
				"ScheduledBackup", "Subscription",
			},
			host: Raw, path: "/cloudnative-pg/cloudnative-pg/release-1.27/releases/cnpg-1.27.0.yaml", installs: true,
		},
	}
}

// manifest is the set in the form in which its project would publish it.
func (s Set) manifest() ([]byte, error) {
	var objects []map[string]any
	if s.installs {
		objects = append(objects,
			map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "cnpg-system"}},
			map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
				"metadata": map[string]any{"name": "cnpg-manager", "namespace": "cnpg-system"}})
	}
	for _, kind := range s.Kinds {
		objects = append(objects, s.crd(kind))
	}
	var out bytes.Buffer
	for _, object := range objects {
		content, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", content)
	}
	return out.Bytes(), nil
}

func (s Set) crd(kind string) map[string]any {
	scope := "Namespaced"
	if name, is := strings.CutPrefix(kind, "*"); is {
		kind, scope = name, "Cluster"
	}
	kind, plural, given := strings.Cut(kind, "/")
	if !given {
		plural = strings.ToLower(kind) + "s"
	}
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": plural + "." + s.Group,
			"annotations": map[string]any{
				"lab.slipway/replaces": s.Name + " v" + s.Version,
			},
		},
		"spec": map[string]any{
			"group": s.Group, "scope": scope,
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": s.Served, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}
