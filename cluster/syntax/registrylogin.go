package syntax

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

const remedyLogin = `set a config.json with {"auths": {"HOST": {"username": "…", "password": "…"}}}`

// RegistryLogin checks a config.json as docker login writes it: the login of the host is in the text, not in a credential store of the
// computer that wrote it.
func RegistryLogin(text, host string) *Fault {
	var config struct {
		Auths       map[string]struct{ Auth, Username, Password string }
		CredsStore  string
		CredHelpers map[string]string
	}
	switch {
	case isInBase64(text, "{"):
		return because("is in base64 as a whole", "set the file as it is")
	case json.Unmarshal([]byte(text), &config) != nil:
		return because("is not JSON in the form of Docker's config.json", remedyLogin)
	case len(config.Auths) == 0 && config.CredsStore == "" && len(config.CredHelpers) == 0:
		return because("has no logins", remedyLogin)
	}
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		login := config.Auths[key]
		if !isLoginOf(key, host) {
			continue
		}
		decoded, err := base64.StdEncoding.DecodeString(login.Auth)
		switch {
		case login.Auth == "" && login.Password == "":
			return because("has no password for "+host+": docker login put it into a store of its machine", remedyLogin)
		case login.Auth != "" && (err != nil || !strings.Contains(string(decoded), ":")):
			return because(`has for `+host+` an "auth" that is not the base64 of USER:PASSWORD`, remedyLogin)
		}
		return nil
	}
	if config.CredsStore != "" || len(config.CredHelpers) > 0 {
		return because("has no password for "+host+": docker login put it into a store of its machine", remedyLogin)
	}
	return because("has no login for "+host, "log in there, or "+remedyLogin)
}

// isLoginOf reports whether a key of "auths" is for a host: HOST, HOST/PATH, https://HOST/v1/ or a pattern of HOST.
func isLoginOf(key, host string) bool {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key, _, _ = strings.Cut(key, "/")
	if key == "index.docker.io" && host == "docker.io" {
		return true
	}
	match, err := path.Match(key, host)
	return err == nil && match
}

// BucketKey checks an access key or a secret key of a bucket.
func BucketKey(text string) *Fault {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return because("has a space, a line break or another control character in it",
			"set it without, for instance with printf instead of echo")
	}
	return nil
}
