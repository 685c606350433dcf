package syntax

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	urlPath       = `[0-9A-Za-z._~!&'()*+,;=:@%/-]`
	pathPattern   = `(/` + urlPath + `*)?$`
	somePath      = `/` + urlPath + `*[0-9A-Za-z._~!&'()*+,;=:@%-]/*$`
	credentials   = "has credentials in it"
	revoke        = "remove them, and revoke the password"
	remedyRelease = "write the URL of one release"
)

var (
	urlPathForm = regexp.MustCompile(`^` + urlPath + `*$`)
	escapeForm  = regexp.MustCompile(`%(..?)?`)
	schemeForm  = regexp.MustCompile(`^(?i:https?|oci|docker|ssh|git|git\+ssh|git\+https):/{0,2}`)
	scpForm     = regexp.MustCompile(`^[^@/\s]+@([0-9A-Za-z.-]+):([^@:\s]*)$`)
	movingForm  = regexp.MustCompile(`(?i)/(latest|HEAD|refs/heads)(/|$)|^https://raw[.]githubusercontent[.]com/[^/]+/[^/]+/(main|master)/`)
	pageForm    = regexp.MustCompile(`^https://github[.]com/([^/]+/[^/]+)/(blob|tree)/`)
)

var urlForms = []Form{
	{
		Name: "https-url", What: "an https URL", Words: "https URL", Example: "https://charts.example.com/stable", Secret: true,
		Pattern: `^https://` + authPattern + pathPattern,
		check:   func(value string) *Fault { _, fault := checkURL(value, "https"); return fault },
		fix:     func(value string) []string { return fixURL(value, "https") },
	},
	{
		Name: "https-host-url", What: "an https URL without a path", Words: "https URL without a path",
		Example: "https://pve.home.arpa:8006/", Secret: true, Pattern: `^https://` + authPattern + `/?$`,
		check: func(value string) *Fault {
			path, fault := checkURL(value, "https")
			if fault == nil && path != "" && path != "/" {
				return because("has a path")
			}
			return fault
		},
		fix: func(value string) []string { return withoutPaths(fixURL(value, "https")) },
	},
	{
		Name: "http-url", What: "a URL", Words: "URL, https or http", Example: "https://mirror.example.com", Secret: true,
		Pattern: `^https?://` + authPattern + pathPattern,
		check:   func(value string) *Fault { _, fault := checkURL(value, "https", "http"); return fault },
		fix:     func(value string) []string { return fixURL(value, "https", "http") },
	},
	{
		Name: "manifest-url", What: "the https URL of a manifest", Words: "https URL of a file", Secret: true,
		Example: "https://mirror.example.com/v1.3.0/crds.yaml",
		Pattern: `^https://` + authPattern + somePath,
		check: func(value string) *Fault {
			path, fault := checkURL(value, "https")
			switch {
			case fault != nil:
				return fault
			case strings.HasSuffix(path, "/") || path == "":
				return because("names no file", "add the file's path")
			case movingForm.MatchString(value):
				return because("is another manifest with every release", remedyRelease)
			case pageForm.MatchString(value):
				return because("is a page about the file, not the file")
			}
			return nil
		},
		fix: func(value string) []string {
			return append(fixURL(value, "https"), pageForm.ReplaceAllString(value, "https://raw.githubusercontent.com/$1/"))
		},
	},
	{
		Name: "git-url", What: "the URL of a Git repository", Words: "https or ssh URL of a Git repository", Secret: true,
		Example: "https://git.home.arpa/platform/slipway.git",
		Pattern: `^(https://|ssh://(` + sshUser + `@)?)` + authPattern + somePath,
		check:   gitURLFault, fix: fixGitURL,
		remedy: "write the repository's https or ssh URL, like https://git.home.arpa/platform/slipway.git",
	},
}

// checkURL checks a URL of one of the schemes, with a host and without credentials, query, fragment and placeholders. It
// returns the path.
func checkURL(value string, schemes ...string) (path string, fault *Fault) {
	scheme, rest, found := strings.Cut(value, "://")
	authority, path := cutAny(rest, "/?#")
	switch {
	case !found:
		return "", wrong()
	case strings.ContainsAny(value, "<>{}$"):
		return "", because("has a placeholder in it", "write what it stands for")
	case strings.Contains(authority, "@") || strings.Contains(path, "@") && authorityFault(authority) != nil:
		return "", because(credentials, revoke)
	case !slices.Contains(schemes, scheme):
		return "", because("has another scheme than " + strings.Join(schemes, " or "))
	case strings.ContainsAny(path, "?#"):
		return "", because("has a query or fragment", "remove it")
	}
	if fault := authorityFault(authority); fault != nil {
		return "", fault
	}
	return path, pathFault(path)
}

// pathFault checks the path of a URL: nothing in it is read in two ways.
func pathFault(path string) *Fault {
	segments, escapes := strings.Split(path, "/"), escapeForm.FindAllString(path, -1)
	switch {
	case !urlPathForm.MatchString(path):
		return because("has a character that no URL has", "write it as %XX, with its two hexadecimal digits")
	case slices.ContainsFunc(escapes, func(escape string) bool { return codeOf(escape) < 0 }):
		return because("has a % that no two hexadecimal digits follow", "write %25 for the character itself, or remove it")
	case slices.ContainsFunc(escapes, func(escape string) bool { return isOddCode(codeOf(escape)) }):
		return because("has an escaped dot, slash or control character in its path", "write the path without it")
	case slices.Contains(segments, ".."):
		return because("has .. in its path", "write the path without it")
	case slices.Contains(segments, "."):
		return because("has . as a part of its path", "write the path without it")
	case strings.Contains(path, "//"):
		return because("has an empty part in its path")
	}
	return nil
}

// codeOf is the number of %XX, or -1 if that is not hexadecimal.
func codeOf(escape string) int {
	code, err := strconv.ParseUint(strings.TrimPrefix(escape, "%"), 16, 8)
	if err != nil || len(escape) != 3 {
		return -1
	}
	return int(code)
}

// isOddCode reports whether an escaped character changes what a path means: a control character, or one of . / \.
func isOddCode(code int) bool {
	return code < ' ' || code == 0x7f || code < 0x7f && strings.ContainsRune(`./\`, rune(code))
}

// fixURL adds or replaces the scheme and removes empty parts of the path.
func fixURL(value string, schemes ...string) []string {
	value = strings.ReplaceAll(value, `\`, "/")
	scheme := schemes[0]
	for given := schemeForm.FindString(value); given != ""; given = schemeForm.FindString(value) {
		value = value[len(given):]
		if lower := strings.ToLower(strings.TrimRight(given, ":/")); slices.Contains(schemes, lower) {
			scheme = lower
		}
	}
	authority, path := cutAny(value, "/")
	if strings.ContainsAny(value, "@?#") {
		return nil // not certain what of it is a secret
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	whole := scheme + "://" + strings.TrimSuffix(strings.TrimSuffix(authority, "."), ":") + path
	return []string{whole, strings.TrimSuffix(whole, "/")}
}

func withoutPaths(urls []string) []string {
	var bare []string
	for _, url := range urls {
		scheme, rest, _ := strings.Cut(url, "://")
		authority, path := cutAny(rest, "/")
		if path != "" {
			path = "/"
		}
		bare = append(bare, scheme+"://"+authority+path)
	}
	return bare
}
