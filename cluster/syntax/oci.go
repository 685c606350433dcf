package syntax

import (
	"regexp"
	"strings"

	"github.com/siderolabs/gen/xslices"
)

const (
	component = `[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*` // OCI distribution specification: name of a repository
	emptySum  = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

var (
	repositoryForm = regexp.MustCompile(`^(/` + component + `)+$`)
	hexForm        = regexp.MustCompile(`^[0-9A-Fa-f]+$`)
	tagSuffix      = regexp.MustCompile(`(:[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?(@sha256:[0-9a-f]*)?$`)
)

var ociForms = []Form{
	ociForm("chart", "a chart", "oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator"),
	ociForm("artifact", "an artifact", "oci://registry.example.com/platform/slipway"),
	{
		Name: "oci-tag", What: "a tag", Words: "tag of an OCI artifact", Example: "latest", Pattern: `^[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}$`,
		remedy: "write at most 128 letters, digits, _, . and -, such as latest",
		fix:    func(value string) []string { return []string{strings.TrimPrefix(value, ":")} },
	},
	{
		Name: "image-registry", What: "a registry and path, without a scheme", Words: "registry and path, without a scheme", Secret: true,
		Example: "ghcr.io/fluxcd",
		Pattern: `^` + authPattern + `(/[a-z0-9][a-z0-9._-]*)*$`,
		check: func(value string) *Fault {
			if strings.Contains(value, "://") {
				return because("has a scheme")
			}
			if fault := repositoryFault(value, ""); fault != nil {
				return fault
			}
			if authority, _ := cutAny(value, "/"); !isRegistry(authority) {
				return because("begins with no registry: that has a dot or a port in it")
			}
			return nil
		},
		fix: func(value string) []string {
			fixed := fixRepository(value)
			return append(fixed, prefixed("docker.io/", fixed)...)
		},
	},
	{
		Name: "sha256", What: "a SHA-256 checksum", Words: "64 hexadecimal digits",
		Example: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Pattern: `^[0-9a-f]{64}$`,
		check: func(value string) *Fault {
			switch {
			case value == emptySum:
				return because("is the checksum of an empty file", "download the file again, and compute its checksum anew")
			case hexForm.MatchString(value) && len(value) != 64:
				return because("has another number of digits than 64, which a SHA-256 checksum has")
			}
			return nil
		},
		fix: func(value string) []string {
			sum, _ := cutAny(strings.TrimPrefix(strings.ToLower(value), "sha256:"), " *")
			return []string{sum}
		},
		remedy: "write the 64 hexadecimal digits that sha256sum prints",
	},
}

// ociForm is the form of a reference of a chart or of an artifact.
func ociForm(of, what, example string) Form {
	return Form{
		Name: "oci-" + of, What: "an OCI reference of " + what + ", without a tag", Words: "OCI reference without a tag", Secret: true,
		Example: example, Pattern: `^oci://` + authPattern + `(/[a-z0-9][a-z0-9._-]*)+$`,
		check: func(value string) *Fault {
			rest, found := strings.CutPrefix(value, "oci://")
			if !found {
				return wrong()
			}
			return repositoryFault(rest, of)
		},
		fix: func(value string) []string { return prefixed("oci://", fixRepository(value)) },
	}
}

// repositoryFault checks HOST[:PORT]/PATH, which must have a path if it is of something.
func repositoryFault(value, of string) *Fault {
	authority, path := cutAny(value, "/")
	switch fault := authorityFault(authority); {
	case strings.ContainsAny(value, "<>{}$"):
		return because("has a placeholder in it", "write what it stands for")
	case strings.Contains(path, "@sha256:") && fault == nil:
		return because("has a digest")
	case strings.Contains(value, "@"):
		return because(credentials, revoke)
	case strings.ContainsAny(value, "?#"):
		return because("has a query or fragment", "remove it")
	case fault != nil:
		return fault
	case path == "" && of != "":
		return because("is only a host", "add the "+of+"'s path")
	case strings.Contains(path, ":"):
		return because("has a tag")
	case path != "" && !repositoryForm.MatchString(path):
		return because("has a path that no registry has")
	}
	return nil
}

// fixRepository removes scheme, tag and digest, and writes the path in lower case.
func fixRepository(value string) []string {
	value = value[len(schemeForm.FindString(value)):]
	authority, path := cutAny(strings.TrimRight(value, "/"), "/")
	return []string{authority + strings.TrimRight(tagSuffix.ReplaceAllString(strings.ToLower(path), ""), "/")}
}

func prefixed(prefix string, texts []string) []string {
	return xslices.Map(texts, func(text string) string { return prefix + text })
}
