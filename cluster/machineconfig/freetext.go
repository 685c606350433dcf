package machineconfig

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

// freeText matches the paths of text whose form Talos does not know: environments, files, manifests, static pods and the
// programs that fetch credentials for images.
var freeText = regexp.MustCompile(`^/(machine|cluster/\w+)/env$|^/ExtensionServiceConfig [^/]*/environment$|` +
	`/(files|configFiles)//content$|/inlineManifests//contents$|/extraManifestHeaders$|/kubelet/credentialProviderConfig$|^/machine/pods$`)

// headers matches the path of free text that is there to hold credentials.
var headers = regexp.MustCompile(`/extraManifestHeaders$`)

// judged makes a Secret of each part of free text that looks like one. A part is a value, or what Kubernetes has in several keys: the value
// of a variable is beside its name.
func judged(path string, value any) any {
	if !headers.MatchString(path) && harmless(path[strings.LastIndex(path, "/")+1:], value) {
		return value
	}
	found := false
	below := func(at string, child any) any {
		hidden := judged(at, child)
		found = found || !harmless(at[strings.LastIndex(at, "/")+1:], child)
		return hidden
	}
	switch value := value.(type) {
	case map[string]any:
		tree := map[string]any{}
		for key, child := range value {
			tree[key] = below(path+"/"+key, child)
		}
		if found {
			return tree
		}
		return secretAll(value)
	case []any:
		list := make([]any, len(value))
		for i, child := range value {
			list[i] = below(path, child)
		}
		return list
	}
	return secretAll(value)
}

// secretAll makes a Secret of each value.
func secretAll(value any) any {
	switch value := value.(type) {
	case map[string]any:
		tree := map[string]any{}
		for key, child := range value {
			tree[key] = secretAll(child)
		}
		return tree
	case []any:
		list := make([]any, len(value))
		for i, child := range value {
			list[i] = secretAll(child)
		}
		return list
	}
	return Secret(fmt.Sprint(value))
}

// certificates matches certificates in PEM, which are no secrets.
var certificates = regexp.MustCompile(`(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----`)

// harmless tells whether nothing in free text looks like a secret: in a file, no line and, if it is YAML, no value.
func harmless(key string, value any) bool {
	if text, isText := value.(string); isText {
		if key != "content" && key != "contents" {
			return !secrecy.Mentioned(key) && !secrecy.Named(key) && !secrecy.Like(text) && !secrecy.IsPlain(key, text)
		}
		text = certificates.ReplaceAllString(text, "")
		for line := range strings.Lines(text) {
			for _, part := range append(strings.Fields(line), line) { // a long line is cut when it is shown
				if secrecy.Like(strings.TrimSpace(part)) || strings.Contains(secrecy.Line(part), "(hidden") {
					return false
				}
			}
		}
		documents, err := yamlDocuments(text)
		for _, document := range documents {
			if err == nil && !clean(document) {
				return false
			}
		}
		return true
	}
	return clean(map[string]any{key: value})
}

// clean tells whether no value of a tree looks like a secret.
func clean(tree any) bool {
	document, err := json.Marshal(tree)
	return err == nil && len(secrecy.InJSON(document)) == 0
}
