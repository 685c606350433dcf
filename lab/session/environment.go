package session

import (
	"os"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/tools"
)

// Environment is base with the additions for a command in the lab: the tools first in PATH, Pulumi's folders inside the
// lab's, the lab's CA for TLS, and the credentials of the simulated Proxmox VE. Variables of base for Pulumi, Proxmox
// and clusters are removed.
func Environment(h *home.Home, s home.Settings, base []string) []string {
	set := map[string]string{
		"PATH":                     h.Bin() + string(os.PathListSeparator) + os.Getenv("PATH"),
		"PULUMI_HOME":              h.PulumiHome(),
		"PULUMI_BACKEND_URL":       "file://" + h.Backend(),
		"PULUMI_CONFIG_PASSPHRASE": s.Secrets.Passphrase,
		"PULUMI_SKIP_UPDATE_CHECK": "true",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
		"PROXMOX_VE_API_TOKEN":                        s.Secrets.ProxmoxToken,
		"SSL_CERT_FILE":                               h.CA(),
		"CURL_CA_BUNDLE":                              h.CA(),
		"GIT_SSL_CAINFO":                              h.CA(),
		"KUBECONFIG":                                  h.Kubeconfig(),
		"TALOSCONFIG":                                 h.Talosconfig(),
		"GOPROXY":                                     "off", // not reachable; the program's modules are in the module cache
		"GOTOOLCHAIN":                                 "local",
		"XDG_STATE_HOME":                              h.UserState(),
		"SLIPWAY_LAB":                                 h.Dir,
	}
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		_, replaced := set[key]
		return replaced || strings.HasPrefix(key, "PULUMI_") || strings.HasPrefix(key, "PROXMOX_VE_") || strings.HasSuffix(strings.ToLower(key), "_proxy")
	})
	if !slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "GOFLAGS=") }) {
		set["GOFLAGS"] = tools.GoFlags // as the program was compiled by make
	}
	for key, value := range set {
		env = append(env, key+"="+value)
	}
	slices.Sort(env)
	return env
}
