package syntax

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

const (
	hidden    = "the value" // stands for a value of which nothing may be shown
	shownMost = 100         // bytes of a value that are shown
)

var (
	plainText = regexp.MustCompile(`^[!#-&(-\[\]-_a-~]+$`) // without quotes, the backslash and white space
	plainPath = regexp.MustCompile(`^[0-9A-Za-z._~+/-]*$`)

	urlSchemes = []string{"https", "http", "oci", "ssh", "git", "git+ssh", "git+https", "file", "ftp", "ntp", "docker"}
	opaque     = []string{"git-username", "api-token"}     // Secret forms whose values are no URLs
	withAt     = []string{"git-branch", "repository-path"} // forms whose values may have an @
)

// Shown is a value as a message may show it: on one line, shortened to about 100 characters, quoted if it has unusual
// characters, and without possible secrets. In doubt it is the scheme and host of a URL, or "the value".
func Shown(form Form, value string) string {
	switch {
	case len(value) > maxLength:
		return hidden
	case slices.Contains(opaque, form.Name),
		!form.Secret && secrecy.IsToken(value) && !strings.Contains(value, "://"):
		return hidden
	case form.Secret, strings.Contains(value, "://"), secrecy.HasPassword(value),
		strings.Contains(value, "@") && !slices.Contains(withAt, form.Name):
		return shownURL(value)
	}
	return shortened(value)
}

// ShownText is Shown for a text of no form.
func ShownText(text string) string { return Shown(Form{}, text) }

// ShownPath is the path of a key as a message may show it: without what may be a secret in the name of a key.
func ShownPath(path string) string { return secrecy.HideInKeys(path) }

// shortened is a value with its middle cut out, and in quotes where its characters may mislead.
func shortened(value string) string {
	if plainText.MatchString(value) {
		if len(value) <= shownMost {
			return value
		}
		return value[:60] + "…" + value[len(value)-35:]
	}
	if len(value) <= shownMost {
		if quoted := strconv.QuoteToASCII(value); len(quoted) <= shownMost+20 {
			return quoted
		}
	}
	head := strconv.QuoteToASCII(value[:min(len(value), 24)])
	tail := strconv.QuoteToASCII(value[max(0, len(value)-12):])
	return strings.TrimSuffix(head, `"`) + "…" + strings.TrimPrefix(tail, `"`)
}

// shownURL is what may be shown of a text that is, or should be, a URL.
func shownURL(value string) string {
	scheme, rest, found := strings.Cut(value, "://")
	switch {
	case !found && isPlainPlace(value):
		return value
	case !found || !slices.Contains(urlSchemes, strings.ToLower(scheme)):
		return hidden
	}
	scheme += "://"
	authority, path := cutAny(rest, `/?#\`)
	// An unescaped / ? or # in a password ends the authority too early; the @ is behind it then.
	if strings.Contains(path, "@") {
		return scheme + "…"
	}
	user := ""
	if scheme == "ssh://" && strings.HasPrefix(authority, "git@") { // the user of every SSH host for Git
		user = "git@"
	}
	authority = authority[strings.LastIndex(authority, "@")+1:]
	if host, ok := splitAuthority(authority); !ok || hostFault(host) != nil || secrecy.HasToken(host) || len(authority) > shownMost {
		return scheme + "…"
	}
	authority = user + authority
	path, query := cutAny(path, "?#")
	if query != "" {
		query = "…"
	}
	whole := scheme + authority + path + query
	if !plainPath.MatchString(path) || secrecy.HasToken(path) || len(whole) > shownMost {
		return scheme + authority + "/…"
	}
	return whole
}

// isPlainPlace reports whether a text without a scheme is only a host with a dot, possibly a port and a path.
func isPlainPlace(value string) bool {
	authority, path := cutAny(value, "/")
	host, ok := splitAuthority(authority)
	return ok && strings.Contains(host, ".") && hostFault(host) == nil &&
		plainPath.MatchString(path) && !secrecy.HasToken(value) && len(value) <= shownMost
}

// cutAny cuts a text before the first of some characters.
func cutAny(text, chars string) (before, after string) {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}
