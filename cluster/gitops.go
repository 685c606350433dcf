package cluster

import (
	"net/url"
	"strings"

	"github.com/slipway-platform/slipway/internal/syntax"
)

// GitOps declares the repository that Flux syncs from, how Flux gets access to it, and the version of Flux.
type GitOps struct {
	// Git repository that Flux syncs from. Over https, Flux has a user name and password, unless `gitops.githubApp` or `gitops.public`
	// says otherwise. Over SSH, it has the key `gitIdentity`; the user is `git` if the URL names none.
	URL string `json:"url" config:"required" form:"git-url" example:"https://git.home.arpa/platform/slipway.git"`
	// Branch that Flux follows.
	Branch string `json:"branch" form:"git-branch" default:"main" example:"release/2026.1"`
	// Folder of the repository that Flux applies. `STACK` is the name of the stack.
	Path string `json:"path" form:"repository-path" follows:"kubernetes/clusters/STACK" example:"kubernetes/clusters/infra"`
	// User of the Git host that `gitPassword` belongs to.
	Username string `json:"username" form:"git-username" default:"flux"`
	// Certificates in PEM of the authorities that Flux trusts for an https URL, beside the public ones.
	CA Text `json:"ca" example:"\"-----BEGIN CERTIFICATE-----\\n…\\n-----END CERTIFICATE-----\\n\""`
	// Public keys of the host of an ssh URL, in the form of OpenSSH's file `known_hosts`. Required with such a URL.
	KnownHosts Text `json:"knownHosts" example:"\"git.home.arpa ssh-ed25519 AAAA…\\n\""`
	// The GitHub App that Flux gets access with.
	GitHubApp *GitHubApp `json:"githubApp"`
	// The repository can be read without credentials.
	Public bool `json:"public" example:"true"`
	// Interval at which Flux checks for changes.
	Interval Duration `json:"interval" range:"10s-" default:"1m" example:"5m"`
	// Longest wait until Flux has applied the folder.
	Timeout Duration `json:"timeout" range:"1s-" default:"10m" example:"20m"`
	// The chart of flux-operator.
	Operator Operator `json:"operator"`
	// The Flux that flux-operator installs.
	Flux Flux `json:"flux"`
}

// GitHubApp is a GitHub App that is installed for the repository, with read access to its contents. Its key is the secret
// `githubAppPrivateKey`. Give one of installationId and owner.
type GitHubApp struct {
	// Id of the app.
	ID int `json:"id" config:"required" range:"1-999999999999" example:"123456"`
	// Id of the installation: the number at the end of its page's URL.
	InstallationID *int `json:"installationId" range:"1-999999999999" example:"78901234"`
	// Organization or user whose installation it is.
	Owner string `json:"owner" form:"github-account" example:"slipway-platform"`
	// URL of GitHub's API. Required for other hosts than github.com.
	BaseURL string `json:"baseURL" form:"https-url" example:"https://github.example.com/api/v3"`
}

// GitAccess is how Flux gets access to its repository.
type GitAccess string

// The kinds of access.
const (
	GitByPassword GitAccess = "password"
	GitBySSH      GitAccess = "ssh"
	GitByApp      GitAccess = "githubApp"
	GitPublic     GitAccess = "public"
)

// Access returns how Flux gets access to the repository.
func (g GitOps) Access() GitAccess {
	switch {
	case strings.HasPrefix(g.URL, "ssh://"):
		return GitBySSH
	case g.GitHubApp != nil:
		return GitByApp
	case g.Public:
		return GitPublic
	}
	return GitByPassword
}

// Operator is the chart of flux-operator.
type Operator struct {
	// Who changes the component after its installation: `pulumi`, by the stack file, or `flux`, by a file in the repository, which then
	// holds the chart, its version and its values. See [operations.md](operations.md#components-that-flux-owns).
	Owner Owner `json:"owner" default:"pulumi" example:"flux"`
	// Chart of flux-operator.
	Chart string `json:"chart" form:"oci-chart" default:"oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator" example:"oci://registry.example.com/charts/flux-operator"`
	// Version of that chart.
	//
	// renovate: datasource=docker depName=ghcr.io/controlplaneio-fluxcd/charts/flux-operator
	Version string `json:"version" form:"chart-version" default:"0.59.0"`
	// Values of one's own for the chart, under its own keys. They must contain no secrets. The chart refuses keys that it does not
	// know when it is installed.
	Values ChartValues `json:"values" example:"{logLevel: debug}"`
}

// Flux is the distribution that flux-operator installs.
type Flux struct {
	// Version of Flux, exact or a range.
	//
	// renovate: datasource=github-releases depName=fluxcd/flux2 extractVersion=^v(?<version>.*)$
	Version string `json:"version" form:"flux-version" default:"2.9.5" example:"2.9.x"`
	// Registry and path of the images of Flux's controllers.
	Registry string `json:"registry" form:"image-registry" default:"ghcr.io/fluxcd" example:"registry.example.com/fluxcd"`
}

// Service returns flux-operator's release.
func (o Operator) Service() Service {
	return Service{
		Key: "gitops.operator", Name: "flux-operator", Namespace: FluxNamespace, Chart: o.Chart, Version: o.Version,
		UserValues: o.Values, Owner: o.Owner,
	}
}

func (g *GitOps) derive(stack string) {
	if g.Path == "" {
		g.Path = "kubernetes/clusters/" + stack
	}
}

// gitOps checks that the settings and secrets of the access fit the URL and each other.
func (c *checker) gitOps() {
	g := c.GitOps
	if g.URL == "" {
		return // missing or unreadable, which is reported already
	}
	if g.Access() == GitBySSH {
		c.gitBySSH()
	} else {
		c.gitByHTTPS()
	}
	if c.GitHubAppPrivateKey.IsSet() && g.GitHubApp == nil {
		c.Found("githubAppPrivateKey", "add it, or run: pulumi config rm githubAppPrivateKey",
			"is the key of a GitHub App, and gitops.githubApp is missing")
	}
}

func (c *checker) gitBySSH() {
	const problem, remedy = "is for https, and gitops.url is an ssh URL", "remove it, or write an https URL"
	g := c.GitOps
	if g.GitHubApp != nil {
		c.Found("gitops.githubApp", remedy, problem)
	}
	if g.Public {
		c.Found("gitops.public", remedy, problem)
	}
	if g.CA != "" {
		c.Found("gitops.ca", remedy, problem)
	}
	if c.GitPassword.IsSet() {
		c.Found("gitPassword", "write an https URL, or run: pulumi config rm gitPassword", problem)
	}
	if g.KnownHosts == "" {
		c.Found("gitops.knownHosts", syntax.KeyScan(g.URL), "is missing")
		return
	}
	c.shape("gitops.knownHosts", syntax.KnownHosts(string(g.KnownHosts), g.URL))
}

func (c *checker) gitByHTTPS() {
	const problem = "is for SSH, and gitops.url is an https URL"
	g := c.GitOps
	if g.KnownHosts != "" {
		c.Found("gitops.knownHosts", "remove it, or write an ssh URL", problem)
	}
	if c.GitIdentity.IsSet() {
		c.Found("gitIdentity", "write an ssh URL, or run: pulumi config rm gitIdentity", problem)
	}
	if g.CA != "" {
		c.shape("gitops.ca", syntax.Certificates(string(g.CA)))
	}
	if g.Public && g.GitHubApp != nil {
		c.Found("gitops.public", "remove one of the two", "true says that no credentials are needed, and gitops.githubApp gives some")
	} else if c.GitPassword.IsSet() && g.Access() != GitByPassword {
		c.Found("gitPassword", "remove one of the two; the password with: pulumi config rm gitPassword",
			"is not used with gitops.%s", g.Access())
	}
	if g.GitHubApp != nil {
		c.gitHubApp(g.GitHubApp)
	}
}

func (c *checker) gitHubApp(app *GitHubApp) {
	const path = "gitops.githubApp"
	owner, installation, api := path+".owner", path+".installationId", path+".baseURL"
	switch {
	case c.Unusable(owner) || c.Unusable(installation): // one is given
	case app.Owner != "" && app.InstallationID != nil:
		c.Found(owner, "keep one", "is given beside installationId, and each says which installation it is")
	case app.Owner == "" && app.InstallationID == nil:
		c.Found(path, "add one of the two", "has neither installationId nor owner")
	}
	if host := hostOf(c.GitOps.URL); app.BaseURL == "" && host != "github.com" {
		c.Found(api, "write the URL of its API, such as https://"+host+"/api/v3", "is missing, and %s is not github.com", host)
	}
}

// hostOf returns the host of a URL, with its port if it has one.
func hostOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return parsed.Host
}

// shape reports a fault of a text of several lines. It never shows the text.
func (c *checker) shape(path string, fault *syntax.Fault) {
	if fault != nil {
		c.Found(path, fault.Remedy, "%s", fault.Problem)
	}
}
