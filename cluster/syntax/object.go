package syntax

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// maxSentence is the longest sentence, in bytes: it stands in a line of a table.
const maxSentence = 300

// singular returns a kind that was perhaps written in the plural, as kubectl takes it.
func singular(kind string) string {
	if one, is := strings.CutSuffix(kind, "ies"); is {
		return one + "y"
	}
	if one, is := strings.CutSuffix(kind, "sses"); is {
		return one + "ss"
	}
	if strings.HasSuffix(kind, "ss") {
		return kind
	}
	return strings.TrimSuffix(kind, "s")
}

// objectForms are the forms of what names objects of Kubernetes.
var objectForms = []Form{
	{
		Name: "object-name", What: "the name of a Kubernetes object", Words: "name of a Kubernetes object", Example: "databases",
		Pattern: `^[0-9A-Za-z]([0-9A-Za-z_.:-]{0,251}[0-9A-Za-z])?$`,
	},
	{
		Name: "api-version", What: "the version of a Kubernetes API", Words: "`[GROUP/]VERSION`", Example: "apps/v1",
		Pattern: `^(` + subdomain + `/)?v[0-9]+((alpha|beta)[0-9]+)?$`,
		fix:     func(value string) []string { return []string{strings.ToLower(value)} },
	},
	{
		Name: "kind", What: "a kind of Kubernetes objects", Words: "kind of Kubernetes objects, in the singular", Example: "Deployment",
		Pattern: `^[A-Z][0-9A-Za-z]{0,62}$`,
		fix: func(value string) []string {
			kind := strings.ToUpper(value[:min(1, len(value))]) + value[min(1, len(value)):]
			return []string{singular(kind), kind}
		},
	},
	{
		Name: "label-selector", What: "a selector of labels", Words: "selector of labels, as kubectl has it", Example: "app=main",
		Pattern: `^[ -~]+$`,
		check:   refusing(func(value string) bool { _, err := labels.Parse(value); return err != nil }, ""),
	},
	{
		Name: "sentence", What: "a sentence", Words: "text, on one line, at most 300 bytes",
		Example: "the databases have a primary", anyScript: true,
		Pattern: `^.+$`, remedy: "write at most 300 bytes on one line",
		check: refusing(func(value string) bool { return len(value) > maxSentence }, "is too long"),
	},
}
