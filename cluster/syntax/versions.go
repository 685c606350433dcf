package syntax

import (
	"cmp"
	"regexp"
	"strings"
)

// The parts of a semantic version, https://semver.org. Numbers have at most nine digits, so that every library reads them.
const (
	number     = `(0|[1-9][0-9]{0,8})`
	triple     = number + `[.]` + number + `[.]` + number
	identifier = `(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`
	prerelease = `(-` + identifier + `([.]` + identifier + `)*)?`
	metadata   = `([+][0-9A-Za-z-]+([.][0-9A-Za-z-]+)*)?`
	stage      = `(-(alpha|beta|rc)[.](0|[1-9][0-9]{0,3}))?` // as Talos and Kubernetes name theirs
)

var (
	releaseForm    = regexp.MustCompile(`^v` + triple + prerelease + `$`)
	talosForm      = regexp.MustCompile(`^v[1-9][0-9]{0,2}[.]` + number + `[.]` + number + stage + `$`)
	kubernetesForm = regexp.MustCompile(`^v1[.]` + number + `[.]` + number + stage + `$`)
	chartForm      = regexp.MustCompile(`^` + triple + prerelease + metadata + `$`)
	fluxForm       = regexp.MustCompile(`^(` + triple + prerelease + `|[1-9][0-9]{0,2}[.]([x*]|` + number + `[.][x*]))$`)

	shortForm  = regexp.MustCompile(`^[vV]?[0-9]+([.][0-9]+)?$`)
	looseForm  = regexp.MustCompile(`^[vV=]*([0-9]+)[.]([0-9]+)[.]([0-9]+)(-[^+]*)?([+_].*)?$`)
	vendorForm = regexp.MustCompile(`^(alpha|beta|rc)[.]?([0-9]+)$`)
)

var versionForms = []Form{
	versionForm("release", "a release", "vMAJOR.MINOR.PATCH", "v1.3.0", releaseForm),
	versionForm("talos-release", "a release of Talos", "vMAJOR.MINOR.PATCH", "v1.12.7", talosForm),
	versionForm("kubernetes-release", "a release of Kubernetes", "vMAJOR.MINOR.PATCH", "v1.35.8", kubernetesForm),
	versionForm("chart-release", "the version of a chart, with a v", "version, with a v", "v1.21.2", releaseForm),
	versionForm("chart-version", "the version of a chart", "version, without a v", "1.18.7", chartForm),
	versionForm("flux-version", "a version of Flux", "version, or range such as 2.x and 2.9.x", "2.9.5", fluxForm),
}

// versionForm is the form of a version, with a v if its example has one.
func versionForm(name, what, words, example string, form *regexp.Regexp) Form {
	r := Form{Name: name, What: what, Words: words, Example: example, Pattern: form.String()}
	v := ""
	if strings.HasPrefix(example, "v") {
		v = "v"
	}
	r.check = func(value string) *Fault {
		switch match := looseForm.FindStringSubmatch(value); {
		case form.MatchString(value):
			return nil
		case shortForm.MatchString(value) && v == "":
			// 1.20 without quotes is a number, and what arrives of it is 1.2: no guess is safe.
			if name == "flux-version" {
				return because("has fewer than three parts", `write all three, in quotes, such as "2.9.5", or a range such as 2.9.x`)
			}
			return because("has fewer than three parts",
				`write all three, in quotes, such as "`+r.Example+`": without quotes, YAML reads 1.20 as 1.2`)
		case shortForm.MatchString(value):
			return because("has fewer than three parts", "write all three, such as "+r.Example)
		case name != "flux-version" && isRange(value):
			return because("is no single version", "write one, such as "+r.Example)
		case match != nil && match[5] != "":
			return because("has build metadata or a vendor's suffix, which is no part of " + r.What)
		}
		return wrong()
	}
	r.fix = func(value string) []string { return fixVersion(value, v) }
	return r
}

func isRange(value string) bool {
	return strings.ContainsAny(value, "^~<>|,* ") || strings.HasSuffix(value, ".x") || value == "latest"
}

// fixVersion adds or removes the v, and removes leading zeros, build metadata and suffixes.
func fixVersion(value, v string) []string {
	if ranged := strings.TrimPrefix(strings.ToLower(value), "v"); v == "" && fluxForm.MatchString(ranged) {
		return []string{ranged}
	}
	match := looseForm.FindStringSubmatch(value)
	if match == nil {
		return nil
	}
	bare := v
	for i, part := range match[1:4] {
		bare += cmp.Or(strings.TrimLeft(part, "0"), "0")
		if i < 2 {
			bare += "."
		}
	}
	if stage := vendorForm.FindStringSubmatch(strings.TrimPrefix(match[4], "-")); stage != nil {
		return []string{bare + match[4], bare + "-" + stage[1] + "." + stage[2]}
	}
	return []string{bare + match[4], bare}
}
