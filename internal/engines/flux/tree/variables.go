package tree

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst/parse"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// Use is a place where a manifest uses a setting without giving a default.
type Use struct {
	File string // below the root of the repository
	Line int    // from 1
	Key  string

	layer layer
}

// Undefined is a use of a setting that nobody defines.
type Undefined struct {
	Use
	Others int // more uses of it, which the same change of the stack file defines
	Remedy string
}

// Error returns the problem with its place and remedy.
func (u Undefined) Error() string {
	others := ""
	if u.Others > 0 {
		others = fmt.Sprintf(" (also in %d more places)", u.Others)
	}
	return fmt.Sprintf("%s:%d: ${%s} is not defined%s, and Flux would write nothing in its place; %s", u.File, u.Line, u.Key, others, u.Remedy)
}

// undefined returns an error for each use that finds no value, and one for all uses that the stack file could define. defined are the keys
// of the settings.
func (r *reader) undefined(defined []string) error {
	var found []*Undefined
	missing := map[string]*Undefined{} // in the stack file
	for _, use := range r.uses {
		isSetting, of := slices.Contains(defined, use.Key), missing[use.Key]
		one := &Undefined{Use: use, Remedy: "add it to gitops.settings in the stack file"}
		switch meant := cluster.Suggest(use.Key, defined); {
		case r.own[use.Key], isSetting && !use.layer.without:
			continue
		case isSetting:
			one.Remedy = "add the ConfigMap " + cluster.ClusterSettings + " to postBuild.substituteFrom of the Kustomization " + use.layer.name
		case follows(use.Key) == "" && meant != "":
			one.Remedy = "did you mean " + meant + "?"
		case of != nil:
			of.Others++
			continue
		case otherEngine[use.Key] != "":
			one.Remedy = otherEngine[use.Key]
			missing[use.Key] = one
		case follows(use.Key) != "":
			one.Remedy = "set " + follows(use.Key) + ", which it follows"
			missing[use.Key] = one
		default:
			missing[use.Key] = one
		}
		found = append(found, one)
	}
	problems := make([]error, len(found))
	for i, one := range found {
		problems[i] = *one
	}
	return errors.Join(problems...)
}

// otherEngine has what to do about the settings that only one of the two engines defines: the tree is for the other one.
var otherEngine = map[string]string{
	"SOURCE_KIND": "it is for Flux, and gitops.engine is argocd: name a folder for Argo CD in gitops.path, as docs/argocd.md shows",
	"SOURCE_URL":  forArgoCD, "SOURCE_BRANCH": forArgoCD, cluster.ArgoCDChecksum: forArgoCD,
}

const forArgoCD = "it is for Argo CD, and gitops.engine is flux: name a folder for Flux in gitops.path"

// follows returns the key of the stack file that a setting follows; "" if it follows none.
func follows(key string) string {
	for _, setting := range cluster.Settings {
		if setting.Key == key {
			return setting.From
		}
	}
	return ""
}

// checkLiteral returns advice about settings that Flux would apply as they are written. Something else than a setting may be meant, such as
// a variable of a script.
func (r *reader) checkLiteral(settings map[string]string) (advice cluster.Problems) {
	for _, use := range r.literal {
		if settings[use.Key] != "" {
			kind, remedy := "Kustomization", "postBuild.substituteFrom"
			if use.layer.application {
				kind, remedy = "Application", "spec.source.plugin.name: "+cluster.ArgoCDPlugin
			}
			advice = append(advice, cluster.NewProblem("gitops.path", "if the setting is meant, give it "+remedy,
				"%s:%d: ${%s} stays as it is: the %s %s replaces nothing", use.File, use.Line, use.Key, kind, use.layer.name))
		}
	}
	return advice
}

// scan adds the variables in keys and values of a document, as Flux reads them. Comments are not in what Flux replaces.
func (r *reader) scan(name string, node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && strings.Contains(node.Value, "$") {
		r.text(name, node)
	}
	for i, child := range node.Content {
		if isKey := node.Kind == yaml.MappingNode && i%2 == 0; !isKey {
			r.addText(name, child)
		}
		r.scan(name, child)
	}
}

// text adds the variables in a key or a value.
func (r *reader) text(name string, node *yaml.Node) {
	line := node.Line
	if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line++ // the text begins below its indicator
	}
	parsed, err := parse.Parse(node.Value)
	if err != nil {
		if !r.layer.nothing {
			r.broken = append(r.broken, fmt.Errorf("%s:%d: Flux cannot read what follows a $ here: %w; write $$ for a $ of the text's own",
				name, line, err))
		}
		return
	}
	from := 0 // where the search for the next variable begins
	visit(parsed.Root, func(use *parse.FuncNode) {
		at := from + max(0, strings.Index(node.Value[from:], "${"+use.Param))
		from = at + 1
		r.used[use.Param] = true
		found := Use{name, line + strings.Count(node.Value[:at], "\n"), use.Param, r.layer}
		switch hasDefault := strings.ContainsAny(use.Name, "=-+?"); {
		case r.layer.nothing:
			r.literal = append(r.literal, found)
		case !hasDefault:
			r.uses = append(r.uses, found)
		}
	})
}

// visit calls a function for each variable, in the order of the text.
func visit(node parse.Node, each func(*parse.FuncNode)) {
	switch node := node.(type) {
	case *parse.ListNode:
		for _, child := range node.Nodes {
			visit(child, each)
		}
	case *parse.FuncNode:
		each(node)
		for _, argument := range node.Args {
			visit(argument, each)
		}
	}
}
