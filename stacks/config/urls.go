package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// webURL checks a URL of one of the schemes, with a host and without credentials, query and fragment. It returns the
// parsed URL, or nil when there is none to look at further.
func (v *validator) webURL(path, text string, schemes ...string) *url.URL {
	if text == "" {
		return nil
	}
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Host == "" || parsed.Hostname() == "":
		v.found(path, "write it like "+schemes[0]+"://host.example.com/", "%s is not a URL", redactURL(text))
	case !slices.Contains(schemes, parsed.Scheme):
		v.found(path, "write "+strings.Join(schemes, " or "), "%s has the scheme %s", redactURL(text), parsed.Scheme)
	case parsed.User != nil:
		v.found(path, "remove them, and revoke the password", "%s has credentials in it", parsed.Redacted())
	case parsed.RawQuery != "" || parsed.Fragment != "":
		v.found(path, "remove it", "%s has a query or fragment", text)
	default:
		return parsed
	}
	return nil
}

// redactURL hides what may be a password, also where the text is no proper URL.
func redactURL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	}
	if _, host, hasUser := strings.Cut(rest, "@"); hasUser {
		rest = "xxxxx@" + host
	}
	if !found {
		return rest
	}
	return fmt.Sprintf("%s://%s", scheme, rest)
}
