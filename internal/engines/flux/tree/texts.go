package tree

import (
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/fluxcd/pkg/envsubst/parse"
	"gopkg.in/yaml.v3"
	kube "sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// text is a value of a manifest with variables.
type text struct {
	file   string
	line   int
	value  string
	quoted bool // so that it is meant as a text, and as no number
}

// addText adds a value to those that are read again with the settings.
func (r *reader) addText(name string, node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && strings.Contains(node.Value, "${") && !r.layer.nothing && !r.layer.without {
		quoted := node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
		r.texts = append(r.texts, text{name, node.Line, node.Value, quoted})
	}
}

// checkTexts returns the problems of settings with the places that use them: after substitution, YAML cannot be read. That it takes the
// value for something else than a text is advice: a number or a boolean may be meant in spite of the quotes, which kustomize leaves out.
// Each setting is named once.
func (r *reader) checkTexts(stack *cluster.Cluster) (advice, problems cluster.Problems, err error) {
	known, err := Settings(r.repository, stack.GitOps.Path)
	if err != nil {
		return nil, nil, err
	}
	var broken, typed cluster.Findings
	settings, named := stack.Settings(), map[string]bool{}
	for _, one := range r.texts {
		parsed, err := parse.Parse(one.value)
		if err != nil {
			continue // which is an error of the manifest
		}
		key, own := "", false
		visit(parsed.Root, func(use *parse.FuncNode) {
			own = own || r.own[use.Param]
			if _, given := settings[use.Param]; given && key == "" {
				key = use.Param
			}
		})
		if key == "" || own || named[key] || known[key].Quantity { // own: another value in each layer; a quantity may be a number
			continue
		}
		problem := one.fault(settings)
		if problem == "" {
			continue
		}
		named[key] = true
		at, remedy, findings := follows(key), fmt.Sprintf("write '${QUOTE:=\"}${%s}${QUOTE:=\"}' there, or another value", key), &broken
		if at == "" {
			at = cluster.KeyPath("gitops.settings", key)
		}
		if problem == noText {
			remedy, findings = "if it is to be one, "+remedy, &typed
		}
		findings.Found(at, remedy, "%s %s after substitution in %s:%d", syntax.ShownText(settings[key]), problem, one.file, one.line)
	}
	return typed.All(), broken.All(), nil
}

// noText is the fault of a value in quotes that YAML takes for something else.
const noText = "is no text"

// fault returns what the value is after substitution if it is not what is meant. kustomize writes the value anew, with quotes only where
// the text before substitution needs them.
func (t text) fault(settings map[string]string) string {
	written, err := kube.Marshal(map[string]string{"text": t.value})
	if err != nil {
		return ""
	}
	replaced, err := envsubst.Eval(string(written), func(name string) (string, bool) {
		value, defined := settings[name]
		return strings.ReplaceAll(value, "\n", ""), defined
	})
	if err != nil {
		return "" // a variable that nobody defines, which is a problem of its own
	}
	var read map[string]any
	if err := kube.Unmarshal([]byte(replaced), &read); err != nil {
		return "is no YAML"
	}
	if _, isText := read["text"].(string); t.quoted && !isText {
		return noText
	}
	return ""
}
