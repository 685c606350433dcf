package cilium

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Keys are the PEM documents that the chart needs handed in. Handed in, they are the same at every render; made by the
// chart, they would differ each time, and every `up` would replace them.
type Keys struct {
	CA     string // certificate of the CA
	Server Pair   // Hubble's server in each agent
	Relay  Pair   // Hubble relay as a client of those servers
}

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Certificate, Key string }

// Render returns the chart's values as a plain tree, for Helm or for any other renderer of the chart. With Keys it holds
// private keys: handle it as a secret.
func (v Values) Render(keys Keys) (map[string]any, error) {
	if err := v.validate(); err != nil {
		return nil, err
	}
	tree, err := asTree(v.chart())
	if err != nil {
		return nil, err
	}
	return merge(tree, keys.tree()), nil
}

// tree places the documents where the chart looks for them, in base64 as it wants them.
func (k Keys) tree() map[string]any {
	return certificateTree(base64Of(k.CA),
		base64Of(k.Server.Certificate), base64Of(k.Server.Key),
		base64Of(k.Relay.Certificate), base64Of(k.Relay.Key))
}

// certificateTree is the part of the values that holds certificates, whatever its leaves are: text here, outputs in the
// component. The CA's private key is not among them: whoever holds it can pose as any part of Cilium, and nothing in
// the cluster needs it.
func certificateTree(ca, serverCert, serverKey, relayCert, relayKey any) map[string]any {
	return map[string]any{
		"tls": map[string]any{"ca": map[string]any{"cert": ca}},
		"hubble": map[string]any{
			"tls":   map[string]any{"server": map[string]any{"cert": serverCert, "key": serverKey}},
			"relay": map[string]any{"tls": map[string]any{"client": map[string]any{"cert": relayCert, "key": relayKey}}},
		},
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

// merge lays the second tree over the first, in the first.
func merge(into, over map[string]any) map[string]any {
	for key, value := range over {
		below, isTree := value.(map[string]any)
		if existing, ok := into[key].(map[string]any); ok && isTree {
			merge(existing, below)
			continue
		}
		into[key] = value
	}
	return into
}
