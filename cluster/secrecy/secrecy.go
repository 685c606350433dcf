// Package secrecy decides what may be a secret: by the name of its key, and by its text. In doubt it is one. Callers add what they know of
// a place, such as an environment in Talos's configuration.
package secrecy

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// The table: all that a secret is recognised by.
const (
	// words are in the names of secrets, and before them in a text.
	words = `passw|token|secret`

	// tokens are texts of known beginnings.
	tokens = `(?:(?:gh[pousr]_|github_pat_|glpat-|gldt-|glrt-|npm_|dckr_pat_|hvs[.])[0-9a-z_-]{6}|` +
		`(?:xox[abeoprs]-|sk-|pul-|AKIA|eyJ|ATATT|ATBB)[0-9a-z_-]{16}|` + webhooks + `)`

	// webhooks are the beginnings of URLs to which anybody who knows one may send.
	webhooks = `hooks\.slack\.com/(?:services|workflows|triggers)/\w|discord(?:app)?\.com/api/webhooks/\d|[\w-]+\.webhook\.office\.com/\w`

	// keys are the forms of private keys and JSON web tokens.
	keys = `PRIVATE KEY-----|AGE-SECRET-KEY-|\beyJ[a-z0-9_-]{8,}`

	// texts end the names whose text is the secret itself.
	texts = `passw(?:or)?d|passphrase|token|psk|secret[-_]?id|(?:private|api|access|secret|preshared)[-_]?key`

	// names end the names of secret values. In values of charts, a name may also end so if it names a Secret or a label.
	names = texts + `|credentials?|secret|passw\w*|private|preshared|[/.-]auth|key`
)

var (
	mention    = regexp.MustCompile(`(?i)` + words + `|credential|private`)
	name       = regexp.MustCompile(`(?i)(` + names + `)$`)
	holder     = regexp.MustCompile(`(?i)(` + texts + `|credentials?)$`)
	token      = regexp.MustCompile(`(?i)` + tokens)
	fullToken  = regexp.MustCompile(`gh[pousr]_[0-9A-Za-z]{30}|github_pat_[0-9A-Za-z_]{20}|glpat-[0-9A-Za-z_-]{18}|dckr_pat_[0-9A-Za-z_-]{20}`)
	word       = regexp.MustCompile(`(?i)\b` + tokens + `|` + keys + `|://[^/@\s]*:[^/@\s]*@|(` + words + `|key)\w*=`)
	long       = regexp.MustCompile(`(?i)^[a-z0-9+_-]{32,}={0,2}$|^[a-z0-9+/]{40,}={0,2}$|^[a-z0-9+/]{32,}={1,2}$`)
	flag       = regexp.MustCompile(`^--[a-z]`)
	password   = regexp.MustCompile(`(?i):[^/]*@|(` + words + `|authorization)[^/]*[=:]`)
	inKey      = regexp.MustCompile(`(?i):[^/"]*@|((` + words + `|authorization)[^/"]*[=:]|` + tokens + `)[^"]*`)
	switched   = regexp.MustCompile(`\w+=(true|false)\b`) // such as a feature gate with a token in its name
	alphanum   = regexp.MustCompile(`[0-9A-Za-z]{16,}`)
	credential = regexp.MustCompile(`(?i)((?:bearer|basic)\s+|(?:` + texts + `|secret)["']?\s*[=:]\s*["']?)[^\s"',;]+`)
	tokenWord  = regexp.MustCompile(`(?i)\b` + tokens + `[^\s"',;]*|AGE-SECRET-KEY-[^\s"',;]*`)
	userInURL  = regexp.MustCompile(`(://[^/\s:@"']*:)[^/\s@"']+@`)
	certain    = regexp.MustCompile(`(?i)\b` + tokens + `|` + keys + `|://[^/@\s]*:[^/@\s]*@|\b(bearer|basic)\s+\S{8,}`)

	secretManifest = regexp.MustCompile(`(?m)^\s*kind: Secret\s*$(?s:.*)^\s*(stringData|data):|` +
		`^\s*(stringData|data):(?s:.*)^\s*kind: Secret\s*$`)

	// public matches what is long and never a secret by itself: the name of a constant, such as a cipher suite, and a UUID.
	public = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$|(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

	kind    = regexp.MustCompile(`^([A-Z][a-z]{2,})+$`)
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`)
)

// Mentioned tells whether a name speaks of secrets: the value may be a secret, or about one.
func Mentioned(name string) bool { return mention.MatchString(name) }

// Named tells whether a name, or the last key of a path, names a secret, or a reference to a secret.
func Named(path string) bool { return name.MatchString(path) }

// IsToken tells whether a text holds what begins as the tokens of well-known services do.
func IsToken(text string) bool { return token.MatchString(text) }

// IsWholeToken tells whether a text holds a token of the length that it has at its service.
func IsWholeToken(text string) bool { return fullToken.MatchString(text) }

// HasPassword tells whether a text has a password before an @, or behind a word such as token=.
func HasPassword(text string) bool { return password.MatchString(text) }

// HasToken tells whether a text has a part that may be a token: a known beginning, or sixteen letters and digits in a row.
func HasToken(text string) bool {
	if IsToken(text) {
		return true
	}
	for _, run := range alphanum.FindAllString(text, -1) {
		if strings.ContainsAny(run, "0123456789") && strings.Trim(run, "0123456789") != "" {
			return true
		}
	}
	return false
}

// Like tells whether a text looks like a secret: a private key, a token, a password in a URL or an argument, or a long string of base64
// or hexadecimal digits that is no name in words. A certificate in base64 is judged by what it decodes to.
func Like(text string) bool {
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(string(decoded), "-----BEGIN CERTIFICATE-----") {
		text = string(decoded)
	}
	text = switched.ReplaceAllString(text, "")
	return word.MatchString(text) || long.MatchString(text) && !flag.MatchString(text) && !inWords(text) && !public.MatchString(text)
}

// inWords tells whether a long text is of letters of one case, as names of objects, files and options are, or of words with one capital
// each, as kinds are. A key that is made at random has digits, or capitals side by side. A passphrase of words has neither: it is found by
// the name of its key only.
func inWords(text string) bool {
	oneCase := strings.ToLower(text) == text || strings.ToUpper(text) == text
	return oneCase && !strings.ContainsAny(text, "0123456789") || kind.MatchString(text)
}

// IsPlain tells whether a text is certainly a secret, by the name of its key or by itself. Unlike Like, it takes no long text that may be
// an id for a secret.
func IsPlain(name, text string) bool {
	return text != "" && (holder.MatchString(name) || certain.MatchString(text))
}

// HideInKeys hides in a path of keys what may be a secret.
func HideInKeys(path string) string { return inKey.ReplaceAllString(path, "…") }
