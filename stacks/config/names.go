package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	labelForm     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	storageForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]$`)
	bridgeForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[0-9]+)?$`)
	tagForm       = regexp.MustCompile(`^[a-z0-9_][a-z0-9_+.-]*$`)
	extensionForm = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9][a-z0-9._-]*$`)
	flagForm      = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	branchForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)
	sysctlForm    = regexp.MustCompile(`^[a-z0-9_-]+([./][A-Za-z0-9_:-]+)+$`)
	hostForm      = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[0-9]{1,5})?$`)
)

// isLabel reports whether the name is a DNS label as RFC 1123 has it, in lower case as Kubernetes wants it.
func isLabel(name string) bool { return len(name) <= maxLabel && labelForm.MatchString(name) }

// label checks the name of a machine, a pool or a Proxmox node.
func (v *validator) label(path, name string) {
	if name == "" || isLabel(name) {
		return
	}
	remedy := fmt.Sprintf("write at most %d of a-z, 0-9 and -, with a letter or digit at both ends", maxLabel)
	if lower := strings.ToLower(name); isLabel(lower) {
		remedy = "did you mean " + lower + "?"
	}
	v.found(path, remedy, "%s is not a host name", name)
}

// shape checks a text against the form of its kind.
func (v *validator) shape(path, text string, form *regexp.Regexp, what, example string) {
	if text != "" && !form.MatchString(text) {
		v.found(path, "write it like "+example, "%s is not %s", text, what)
	}
}

// distinct reports the items of a list that stand in it before.
func (v *validator) distinct(path string, items []string) {
	for i, item := range items {
		if first := slices.Index(items, item); first < i && item != "" {
			v.found(fmt.Sprintf("%s[%d]", path, i), "remove one", "%s is the same as %s[%d]", item, path, first)
		}
	}
}
