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

// judged makes a Secret of each part of free text that looks like one.
func judged(path string, value any) any {
	name := path[strings.LastIndex(path, "/")+1:]
	if headers.MatchString(path) || !harmless(name, value) {
		return secretParts(path, value)
	}
	return value
}

// secretParts makes a Secret of each part that looks like one, or of all if each looks harmless alone.
func secretParts(path string, value any) any {
	found := false
	below := func(key string, child any) any {
		if harmless(key, child) {
			return child
		}
		found = true
		return secretParts(path+"/"+key, child)
	}
	switch value := value.(type) {
	case map[string]any:
		tree := map[string]any{}
		for key, child := range value {
			if tree[key] = below(key, child); isEnvironment(path) && isVariable(key, fmt.Sprint(child)) {
				tree[key], found = secretAll(child), true
			}
		}
		if found {
			return tree
		}
	case []any:
		list := make([]any, len(value))
		for i, child := range value {
			if list[i] = below("", child); follows(value, i) || isEnvironment(path) && isAssignment(child) {
				list[i], found = secretAll(child), true
			}
		}
		if found {
			return list
		}
	}
	return secretAll(value)
}

// secretAll makes a Secret of each value but switches.
func secretAll(value any) any { return hidden("", alone(value), true) }

// What looks like a secret in free text, beside what package secrecy knows.
var (
	short    = regexp.MustCompile(`(?i)(^|[_-])(pass|pwd|pin)$`)   // names of variables
	registry = regexp.MustCompile(`(?i)\bauths?["']?\s*:\s*["'{]`) // a login of a registry
	spaced   = regexp.MustCompile(`(?im)^[^#\n]*\bpassw(or)?d[ \t]+\S+|^\s*MONITOR[ \t]+\S+[ \t]+\d+[ \t]+\S+[ \t]+\S+`)

	// certificates matches certificates in PEM, which are no secrets.
	certificates = regexp.MustCompile(`(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----`)
)

// isEnvironment tells whether variables are below a path.
func isEnvironment(path string) bool {
	return strings.HasSuffix(path, "/env") || strings.HasSuffix(path, "/environment")
}

// isVariable tells whether a variable is a secret.
func isVariable(name, value string) bool {
	return secrecy.Mentioned(name) || secrecy.Named(name) || short.MatchString(name) || secrecy.Like(value)
}

// isAssignment tells whether an item is a variable with its value that is a secret.
func isAssignment(item any) bool {
	text, isText := item.(string) // the variables of a pod are mappings
	name, value, _ := strings.Cut(text, "=")
	return isText && isVariable(name, value)
}

// follows tells whether an item is the value of the flag before it, and that speaks of a secret: --password VALUE.
func follows(items []any, i int) bool {
	if i == 0 {
		return false
	}
	flag, _ := items[i-1].(string)
	return strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && (secrecy.Mentioned(flag) || strings.HasSuffix(flag, "pass"))
}

// harmless tells whether nothing in free text looks like a secret.
func harmless(key string, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		data := value["data"] != nil || value["stringData"] != nil
		name, _ := value["name"].(string)
		if value["kind"] == "Secret" && data || short.MatchString(name) && value["value"] != nil || !clean(map[string]any{key: value}) {
			return false
		}
		for name, child := range value {
			if !harmless(name, child) || (key == "env" || key == "environment") && isVariable(name, fmt.Sprint(child)) {
				return false
			}
		}
	case []any:
		for i, child := range value {
			if !harmless("", child) || follows(value, i) || key == "environment" && isAssignment(child) {
				return false
			}
		}
	case string:
		if key == "content" || key == "contents" {
			return harmlessText(value, key == "content")
		}
		return !secrecy.Like(value) && !secrecy.IsPlain(key, value) && !short.MatchString(key)
	}
	return true
}

// harmlessText tells whether no line of a file or of a manifest and, if it is YAML, no value in it looks like a secret.
func harmlessText(text string, isFile bool) bool {
	text = certificates.ReplaceAllString(text, "")
	if registry.MatchString(text) || isFile && spaced.MatchString(text) {
		return false
	}
	for line := range strings.Lines(text) {
		for _, part := range append(strings.Fields(line), line) { // a long line is cut when it is shown
			part = strings.Trim(part, " \t\r\n\"',;[]{}")
			if secrecy.Like(part) || isFile && strings.Contains(secrecy.Line(part), "(hidden") {
				return false
			}
		}
	}
	documents, err := yamlDocuments(text)
	for _, document := range documents {
		if err == nil && !harmless("", document) {
			return false
		}
	}
	return true
}

// clean tells whether no value of a tree looks like a secret.
func clean(tree any) bool {
	document, err := json.Marshal(tree)
	return err == nil && len(secrecy.InJSON(document)) == 0
}
