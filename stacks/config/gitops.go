package config

import (
	"path"
	"regexp"
	"strings"
)

var (
	chartRefForm = regexp.MustCompile(`^oci://[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)
	imagesForm   = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`)
	usernameForm = regexp.MustCompile(`^[^\s:]+$`)
)

func (v *validator) validateGitOps() {
	g := v.GitOps
	v.gitURL()
	v.shape("gitops.branch", g.Branch, branchForm, "the name of a branch", "main")
	v.shape("gitops.username", g.Username, usernameForm, "a user name", "flux")
	if folder := strings.TrimPrefix(g.Path, "./"); path.IsAbs(folder) || path.Clean(folder) != strings.TrimSuffix(folder, "/") ||
		strings.HasPrefix(folder, "..") {
		v.found("gitops.path", "write a folder of the repository, such as kubernetes/clusters/"+v.Name, "%s is not a relative path", g.Path)
	}
	if g.Interval.Duration < minInterval {
		v.found("gitops.interval", "write at least "+minInterval.String(), "%s is too short for the Git host", g.Interval)
	}
	if g.Timeout.Duration < minTimeout {
		v.found("gitops.timeout", "write at least "+minTimeout.String(), "%s is too short for any check", g.Timeout)
	}
	v.shape("gitops.operator.chart", g.Operator.Chart, chartRefForm, "an OCI reference of a chart, without a tag",
		"oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator")
	v.shape("gitops.flux.registry", g.Flux.Registry, imagesForm, "a registry and path, without a scheme", "ghcr.io/fluxcd")
}

// gitURL checks the repository's URL. Flux gets a user and a password, which only https carries.
func (v *validator) gitURL() {
	const path = "gitops.url"
	given := v.GitOps.URL
	if strings.HasPrefix(given, "ssh://") || (strings.Contains(given, "@") && !strings.Contains(given, "://")) {
		v.found(path, "write the repository's https URL", "%s is for SSH, and Flux is given a user name and password", redactURL(given))
		return
	}
	if parsed := v.webURL(path, given, "https"); parsed != nil && strings.Trim(parsed.Path, "/") == "" {
		v.found(path, "add the repository's path", "%s is only a host", given)
	}
}

func (v *validator) validateSecrets() {
	if !v.GitPassword.IsSet() && !v.secretsElsewhere {
		v.found("gitPassword", "set it with: pulumi config set --secret "+Namespace+":gitPassword", "is missing")
	}
	// A password may begin or end in a space; a line break is what a file or a here-document added.
	if strings.ContainsAny(v.GitPassword.Reveal(), "\r\n") {
		v.found("gitPassword", "set it without", "has a line break in it")
	}
	if token := v.ProxmoxAPIToken.Reveal(); token != "" && !tokenForm.MatchString(token) {
		v.found("proxmoxApiToken", "write USER@REALM!TOKENID=UUID, as Proxmox VE shows it once", "is not an API token")
	}
}

var tokenForm = regexp.MustCompile(`^[^\s@!=]+@[^\s@!=]+![^\s@!=]+=[0-9a-fA-F-]{36}$`)
