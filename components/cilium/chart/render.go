package chart

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// Keys are the PEM documents that Slipway passes to the chart, so that they are the same at every render. Certificates that the
// chart generates would differ each time, and every `up` would replace them. Documents of disabled parts are empty.
type Keys struct {
	CA     string // the CA's certificate
	Server Pair   // Hubble's server in each agent
	Relay  Pair   // Hubble relay as a client of those servers
	Mesh   MeshKeys
}

// MeshKeys are the certificates and keys of the mesh API server.
type MeshKeys struct {
	Server Pair // the API server
	Admin  Pair // clients in the same cluster
	Remote Pair // clients in other clusters
}

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Certificate, Key string }

// Render returns the chart's values as a plain tree, for Helm or for any other renderer of the chart. With Keys it contains
// private keys: handle it as a secret.
func (v Values) Render(keys Keys) (map[string]any, error) { return v.render(v.Documents(keys)) }

// RenderOwn returns the part of Render that Slipway sets.
func (v Values) RenderOwn(keys Keys) (map[string]any, error) {
	return v.Own(inBase64(v.Documents(keys)))
}

// Documents returns the PEM documents that the enabled parts need, by their path in the chart's values.
func (v Values) Documents(keys Keys) map[string]string {
	documents := map[string]string{PathCA: keys.CA}
	for _, what := range v.Certificates() {
		pair := what.of(&keys)
		documents[what.Path+".cert"], documents[what.Path+".key"] = pair.Certificate, pair.Key
	}
	return documents
}

// render returns the chart's values with the PEM documents at their paths.
func (v Values) render(documents map[string]string) (map[string]any, error) {
	return v.Tree(inBase64(documents))
}

func inBase64(documents map[string]string) map[string]any {
	values := map[string]any{}
	for path, document := range documents {
		values[path] = base64Of(document)
	}
	return values
}

// Tree returns the chart's values: Slipway's, the user's, and the certificates and keys at their dotted paths. They may be of any
// type, so that a caller can pass some that are known later.
func (v Values) Tree(certificates map[string]any) (map[string]any, error) {
	tree, err := v.Cilium.Values.MergedInto(v.chart())
	if err != nil {
		return nil, err
	}
	return place(v.fillNulls(tree), certificates), nil
}

// Own returns the part of Tree that Slipway sets.
func (v Values) Own(certificates map[string]any) (map[string]any, error) {
	tree, err := asTree(v.chart())
	if err != nil {
		return nil, err
	}
	return place(v.fillNulls(tree), certificates), nil
}

// noValue is what a template writes for null. Helm removes it from manifests, but not from what the chart computes checksums of.
const noValue = "<no value>"

// fillNulls gives the values whose default is null, and whose key the chart looks for, what Helm 3 renders for null. Helm 4, with which
// Flux renders, leaves such keys out, and so their lines of Cilium's ConfigMap: every agent would restart when Flux takes over. The user's
// values take precedence.
func (v Values) fillNulls(tree map[string]any) map[string]any {
	if v.Cilium.Owner != cluster.OwnerFlux {
		return tree
	}
	for path, empty := range map[string]any{"debug.verbose": noValue, "nodePort.addresses": []any{}, "policyCIDRMatchMode": []any{}} {
		if !has(tree, path) {
			place(tree, map[string]any{path: empty})
		}
	}
	return tree
}

// has reports whether a tree has a value at a dotted path.
func has(tree map[string]any, path string) bool {
	key, below, more := strings.Cut(path, ".")
	value, given := tree[key]
	if !given || !more {
		return given
	}
	inner, isMap := value.(map[string]any)
	return !isMap || has(inner, below)
}

// CheckUserValues adds a problem for each of the user's values that Slipway sets, too, that a release of Cilium has removed, or whose key
// the chart does not know.
func CheckUserValues(c *cluster.Cluster, findings *cluster.Findings) {
	const path = "cilium.values"
	values, own := Values{Cluster: c}, map[string]any{}
	if tree, err := asTree(values.chart()); err == nil {
		documents := map[string]any{}
		for document := range values.Documents(Keys{}) {
			documents[document] = ""
		}
		own = place(tree, documents)
	}
	for _, key := range c.Cilium.Values.Conflicts(own) {
		findings.Found(cluster.KeyPath(path, key), "remove it, or use the key of cilium that it belongs to", cluster.OwnedValue)
	}
	given, err := c.Cilium.Values.Tree()
	if err != nil {
		return
	}
	checkRemoved(findings, path, c.Cilium.Version, given)
	if knownRelease(c.Cilium.Version) {
		unknownKeys(findings, path, "", given)
	}
}

func base64Of(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }

func asTree(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("chart values: %w", err)
	}
	var tree map[string]any
	return tree, json.Unmarshal(text, &tree)
}
