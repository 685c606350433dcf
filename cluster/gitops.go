package cluster

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// GitOps declares the engine that the cluster is handed over to, what it syncs from, and how it gets access to it. Give one of url, oci and
// bucket. Where this section says Flux, it is Argo CD with `gitops.engine: argocd`, unless it says otherwise.
type GitOps struct {
	// Hand the cluster over to the engine. With `false` on a cluster that the engine runs, the engine is uninstalled. What it has applied
	// stays, unless `gitops.deletionPolicy` says otherwise.
	Enabled bool `json:"enabled" default:"true" example:"false"`
	// What applies the repository: Flux, or [Argo CD](argocd.md). On a living cluster, it changes in
	// [two runs](argocd.md#from-one-engine-to-the-other).
	Engine Engine `json:"engine" default:"flux" example:"argocd"`
	// What becomes of everything that Flux has applied when `gitops.enabled` turns `false`: it stays and keeps running (`orphan`), or
	// Flux removes it first (`delete`). It takes effect with a run while `gitops.enabled` is `true`; a change in the same run as
	// `enabled: false` comes too late. Objects with the annotation `kustomize.toolkit.fluxcd.io/prune: disabled` stay in either case, such
	// as the HelmReleases of the components that Flux owns, and `pulumi destroy` removes nothing by itself.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy" default:"orphan" example:"delete"`
	// Git repository that Flux syncs from. Over https, Flux has a user name and password, unless `gitops.githubApp` or `gitops.public`
	// says otherwise. Over SSH, it has the key `gitIdentity`; the user is `git` if the URL names none. Required without `gitops.oci` and
	// `gitops.bucket`.
	URL string `json:"url" form:"git-url" example:"https://git.home.arpa/platform/slipway.git"`
	// Branch of the Git repository that Flux follows.
	Branch string `json:"branch" form:"git-branch" default:"main" example:"release/2026.1"`
	// OCI artifact that Flux syncs from, instead of a Git repository.
	OCI *OCIArtifact `json:"oci"`
	// Bucket that Flux syncs from, instead of a Git repository.
	Bucket *Bucket `json:"bucket"`
	// Folder of the repository, artifact or bucket that Flux applies. `STACK` is the name of the stack.
	Path string `json:"path" form:"repository-path" follows:"kubernetes/clusters/STACK" example:"kubernetes/clusters/infra"`
	// User of the Git host that `gitPassword` belongs to.
	Username string `json:"username" form:"git-username" default:"flux"`
	// Certificates in PEM of the authorities that Flux trusts for an https URL, the registry or the bucket's host, beside the public ones.
	// Argo CD trusts these alone for the host: for a host with a public certificate, give its authority, too, or leave the key out.
	CA Text `json:"ca" example:"\"-----BEGIN CERTIFICATE-----\\n…\\n-----END CERTIFICATE-----\\n\""`
	// Public keys of the host of an ssh URL, in the form of OpenSSH's file `known_hosts`. Required with such a URL.
	KnownHosts Text `json:"knownHosts" example:"\"git.home.arpa ssh-ed25519 AAAA…\\n\""`
	// The GitHub App that Flux gets access with.
	GitHubApp *GitHubApp `json:"githubApp"`
	// The repository, artifact or bucket can be read without credentials.
	Public bool `json:"public" example:"true"`
	// Interval at which Flux checks for changes.
	Interval Duration `json:"interval" range:"10s-" default:"1m" example:"5m"`
	// Longest wait until Flux has applied the folder, and until it has removed what it has applied (`gitops.deletionPolicy`).
	Timeout Duration `json:"timeout" range:"30s-" default:"10m" example:"20m"`
	// Settings of your own for the manifests, beside those of [Cluster settings](#cluster-settings), which they must not repeat. Flux
	// writes a value as it is, so that YAML in it is read as YAML. They must contain no secrets.
	Settings map[string]string `json:"settings" keys:"setting" example:"{DOMAIN: infra.example.com}"`
	// The chart of flux-operator.
	Operator Operator `json:"operator"`
	// The Flux that flux-operator installs.
	Flux Flux `json:"flux"`
	// The Argo CD of `gitops.engine: argocd`.
	ArgoCD ArgoCD `json:"argocd"`
}

// DeletionPolicy is what becomes of what Flux has applied once Flux is uninstalled. The words are those of a Kustomization of Flux.
type DeletionPolicy string

// The policies.
const (
	DeletionOrphan DeletionPolicy = "orphan"
	DeletionDelete DeletionPolicy = "delete"
)

// Choices lists the policies.
func (DeletionPolicy) Choices() []string { return texts(DeletionOrphan, DeletionDelete) }

// OCIArtifact is an artifact in a registry, as `flux push artifact` makes it. Its login is the secret `ociConfig`, unless
// `gitops.public` says that it needs none.
type OCIArtifact struct {
	// Repository of the artifact, without a tag.
	URL string `json:"url" config:"required" form:"oci-artifact" example:"oci://registry.example.com/platform/slipway"`
	// Tag that Flux follows.
	Tag string `json:"tag" form:"oci-tag" default:"latest" example:"production"`
}

// Bucket is a bucket of a server that speaks S3, over https. Its keys are the secrets `bucketAccessKey` and `bucketSecretKey`, unless
// `gitops.public` says that it needs none.
type Bucket struct {
	// Server of the bucket, without a scheme.
	Endpoint string `json:"endpoint" config:"required" form:"bucket-endpoint" example:"s3.example.com"`
	// Name of the bucket.
	Name string `json:"name" config:"required" form:"bucket-name" example:"platform"`
}

// GitHubApp is a GitHub App that is installed for the repository, with read access to its contents. Its key is the secret
// `githubAppPrivateKey`. Give one of installationId and owner.
type GitHubApp struct {
	// Id of the app.
	ID int `json:"id" config:"required" range:"1-999999999999" example:"123456"`
	// Id of the installation: the number at the end of its page's URL.
	InstallationID *int `json:"installationId" range:"1-999999999999" example:"78901234"`
	// Organization or user whose installation it is. Flux reads it from 2.8 on, Argo CD from chart 9.4 on.
	Owner string `json:"owner" form:"github-account" example:"slipway-platform"`
	// URL of GitHub's API. Required for other hosts than github.com.
	BaseURL string `json:"baseURL" form:"https-url" example:"https://github.example.com/api/v3"`
}

// SourceKind is the kind of Flux's source, as the FluxInstance takes it.
type SourceKind string

// The kinds of sources.
const (
	SourceGit    SourceKind = "GitRepository"
	SourceOCI    SourceKind = "OCIRepository"
	SourceBucket SourceKind = "Bucket"
)

// ExampleRepository is the URL that the template of a repository and the documents have in the place of the user's own.
const ExampleRepository = "https://github.com/OWNER/REPOSITORY.git"

// Source is what Flux syncs from, as the FluxInstance takes it.
type Source struct {
	Kind SourceKind
	URL  string // of the repository; of a bucket, its server
	Ref  string // reference of a branch, tag of an artifact, or name of a bucket
}

// Source returns what Flux syncs from.
func (g GitOps) Source() Source {
	switch {
	case g.OCI != nil:
		return Source{Kind: SourceOCI, URL: g.OCI.URL, Ref: g.OCI.Tag}
	case g.Bucket != nil:
		return Source{Kind: SourceBucket, URL: g.Bucket.Endpoint, Ref: g.Bucket.Name}
	}
	return Source{Kind: SourceGit, URL: g.URL, Ref: "refs/heads/" + g.Branch}
}

// SourceAccess is how Flux gets access to its source.
type SourceAccess string

// The kinds of access.
const (
	GitByPassword SourceAccess = "password"
	GitBySSH      SourceAccess = "ssh"
	GitByApp      SourceAccess = "githubApp"
	OCIByLogin    SourceAccess = "oci"
	BucketByKeys  SourceAccess = "bucket"
	Public        SourceAccess = "public"
)

// Access returns how Flux gets access to its source.
func (g GitOps) Access() SourceAccess {
	switch kind := g.Source().Kind; {
	case kind != SourceGit && g.Public:
		return Public
	case kind == SourceOCI:
		return OCIByLogin
	case kind == SourceBucket:
		return BucketByKeys
	case strings.HasPrefix(g.URL, "ssh://"):
		return GitBySSH
	case g.GitHubApp != nil:
		return GitByApp
	case g.Public:
		return Public
	}
	return GitByPassword
}

// Operator is the chart of flux-operator.
type Operator struct {
	Owned

	// Chart of flux-operator.
	Chart string `json:"chart" form:"oci-chart" default:"oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator" example:"oci://registry.example.com/charts/flux-operator"`
	// Version of that chart.
	//
	// renovate: datasource=docker depName=ghcr.io/controlplaneio-fluxcd/charts/flux-operator
	Version string `json:"version" form:"chart-version" default:"0.59.0"`
	// Values of one's own for the chart, under its own keys. They must contain no secrets. The chart refuses keys that it does not
	// know when it is installed. Its web page is off unless `web.enabled` is set here: the page shows everything of Flux without a login.
	Values ChartValues `json:"values" example:"{logLevel: debug}"`
}

// defaults returns the values that Slipway sets; nil if the user sets them, or if the chart does not know them. The chart's web page
// shows every pod of the cluster all objects of Flux, without a login. Charts before 0.36 have none, and refuse its values.
func (o Operator) defaults() any {
	values, _ := o.Values.Tree()
	web, _ := values["web"].(map[string]any)
	if _, given := web["enabled"]; given || olderThan(o.Version, 0, 36) {
		return nil
	}
	return mapping{"web": mapping{"enabled": false}}
}

// Service returns flux-operator's release.
func (o Operator) Service() Service {
	return Service{
		Key: "gitops.operator", Name: FluxOperator, Namespace: FluxNamespace, Chart: o.Chart, Version: o.Version,
		Values: o.defaults(), UserValues: o.Values, Owner: o.Owner,
		Needed: []Needed{
			{"installCRDs", true, "leaves out the CRD of the FluxInstance, with which Slipway installs Flux"},
			{"rbac.create", true, "leaves the operator without rights"},
			{"logLevel", regexp.MustCompile(`^(debug|info|error)$`), "is not debug, info or error, and the chart takes no other"},
		},
	}
}

func (g *GitOps) derive(stack string) {
	fill(&g.Path, "kubernetes/clusters/"+stack)
	g.Flux.derive()
	for _, one := range []*string{&g.URL, &g.ArgoCD.CredentialsFor} {
		if rest, isSSH := strings.CutPrefix(*one, "ssh://"); isSSH && g.Engine == EngineArgoCD && !strings.Contains(rest, "@") {
			*one = "ssh://git@" + rest // Argo CD takes no URL of SSH without a user
		}
	}
}

// gitOps checks that there is one source, that the settings and secrets of the access fit the source and each other, and Flux itself.
func (c clusterCheck) gitOps() {
	g := c.GitOps
	if !g.Enabled {
		return // the other keys and the secrets may stay, for later
	}
	if g.ByFlux() {
		c.flux()
	}
	switch {
	case c.Unusable("gitops.url"): // reported already
	case g.Source().Kind != SourceGit:
		c.otherThanGit(g)
	case g.URL == "":
		c.Found("gitops.url", "write the URL of a Git repository, or add gitops.oci or gitops.bucket", "is missing")
	case g.Access() == GitBySSH:
		c.gitBySSH()
	default:
		c.gitByHTTPS()
	}
	c.unusedSourceSecrets(g)
	c.unusedOfGit(g)
	for _, setting := range Settings {
		if _, repeated := g.Settings[setting.Key]; repeated {
			c.Found(KeyPath("gitops.settings", setting.Key), "pick another name", "follows %s", setting.From)
		}
	}
	for _, name := range sorted(g.Settings) {
		if secrecy.IsPlain(name, g.Settings[name]) {
			c.Unreadable(KeyPath("gitops.settings", name), "revoke what it holds, and give it by a provider of secrets: docs/gitops.md",
				"looks like a secret, and settings are readable in the file and in the cluster")
		}
	}
	if c.GitHubAppPrivateKey.IsSet() && g.GitHubApp == nil {
		c.Found("githubAppPrivateKey", "add it, or run: pulumi config rm slipway:githubAppPrivateKey",
			"is the key of a GitHub App, and gitops.githubApp is missing")
	}
}

// unusedOfGit reports a user and a branch that have no effect.
func (c clusterCheck) unusedOfGit(g GitOps) {
	var plain GitOps
	SetDefaults(&plain)
	access := g.Access()
	if g.Username != plain.Username && g.Username != "" && access != GitByPassword && !c.Unusable("gitops.url") {
		c.Found("gitops.username", "remove it", "%s is for the secret gitPassword, which Flux does not use here", g.Username)
	}
	if g.Branch != plain.Branch && g.Branch != "" && g.Source().Kind != SourceGit {
		c.Found("gitops.branch", "remove it", "%s is for a Git repository, and Flux syncs from another source", g.Branch)
	}
}

// otherThanGit checks that nothing is declared that is for Git only.
func (c clusterCheck) otherThanGit(g GitOps) {
	section, remedy := "gitops.oci", "keep one of the two"
	if g.OCI == nil {
		section = "gitops.bucket"
	}
	if g.OCI != nil && g.Bucket != nil {
		c.Found("gitops.bucket", "keep one", "is given beside gitops.oci, and Flux syncs from one source")
	}
	c.refuse(remedy, "is given beside "+section+", and Flux syncs from one source", oneKey{"gitops.url", g.URL != ""})
	forGit := "is for a Git repository, and " + section + " is given"
	c.refuse(remedy, forGit, oneKey{"gitops.githubApp", g.GitHubApp != nil}, oneKey{"gitops.knownHosts", g.KnownHosts != ""})
	c.unset(forGit, NamedSecret{"gitPassword", c.GitPassword}, NamedSecret{"gitIdentity", c.GitIdentity})
	if g.CA != "" {
		c.fault("gitops.ca", syntax.Certificates(string(g.CA)))
	}
	c.refOfTemplate(g)
}

// refOfTemplate checks the tag or the name of the bucket, which a template of flux-operator writes into YAML without quotes.
func (c clusterCheck) refOfTemplate(g GitOps) {
	path, remedy := "gitops.oci.tag", "follow a tag that is text, such as v"+g.Source().Ref
	if g.OCI == nil {
		path, remedy = "gitops.bucket.name", "take a bucket whose name is text, such as platform"
	}
	if ref := g.Source().Ref; !c.Unusable(path) && !isText(ref) {
		c.Found(path, remedy, "%s is no text to YAML, in which flux-operator writes it without quotes", ref)
	}
}

// unusedSourceSecrets reports the secrets of an artifact or a bucket that Flux does not sync from.
func (c clusterCheck) unusedSourceSecrets(g GitOps) {
	for _, access := range []SourceAccess{OCIByLogin, BucketByKeys} {
		declared := access == OCIByLogin && g.OCI != nil || access == BucketByKeys && g.Bucket != nil
		for _, one := range c.Secrets.OfSource(access) {
			switch section := "gitops." + string(access); {
			case !declared:
				c.unused(section, one.NamedSecret)
			case one.Secret.IsSet() && g.Public && !c.Unusable(section):
				c.Found(one.Key, "remove one of the two; the secret with: pulumi config rm slipway:"+one.Key, "is not used with gitops.public")
			}
		}
	}
	login := c.OCIConfig.Reveal()
	if login != "" && g.OCI != nil {
		c.fault("ociConfig", syntax.RegistryLogin(login, urlOf(g.OCI.URL).Host))
	}
}

func (c clusterCheck) gitBySSH() {
	const problem, remedy = "is for https, and gitops.url is an ssh URL", "remove it, or write an https URL"
	g := c.GitOps
	c.refuse(remedy, problem,
		oneKey{"gitops.githubApp", g.GitHubApp != nil}, oneKey{"gitops.public", g.Public}, oneKey{"gitops.ca", g.CA != ""})
	c.refuse("write an https URL, or run: pulumi config rm slipway:gitPassword", problem, oneKey{"gitPassword", c.GitPassword.IsSet()})
	if g.KnownHosts == "" {
		c.Found("gitops.knownHosts", syntax.KeyScan(g.URL), "is missing")
		return
	}
	c.fault("gitops.knownHosts", syntax.KnownHosts(string(g.KnownHosts), g.URL))
}

func (c clusterCheck) gitByHTTPS() {
	const problem = "is for SSH, and gitops.url is an https URL"
	g := c.GitOps
	c.refuse("remove it, or write an ssh URL", problem, oneKey{"gitops.knownHosts", g.KnownHosts != ""})
	c.refuse("write an ssh URL, or run: pulumi config rm slipway:gitIdentity", problem, oneKey{"gitIdentity", c.GitIdentity.IsSet()})
	if g.CA != "" {
		c.fault("gitops.ca", syntax.Certificates(string(g.CA)))
	}
	if g.Public && g.GitHubApp != nil {
		c.Found("gitops.public", "remove one of the two", "true says that no credentials are needed, and gitops.githubApp gives some")
	} else if c.GitPassword.IsSet() && g.Access() != GitByPassword {
		c.Found("gitPassword", "remove one of the two; the password with: pulumi config rm slipway:gitPassword",
			"is not used with gitops.%s", g.Access())
	}
	if g.GitHubApp != nil {
		c.gitHubApp(g.GitHubApp)
	}
}

func (c clusterCheck) gitHubApp(app *GitHubApp) {
	const path = "gitops.githubApp"
	owner, installation, api := path+".owner", path+".installationId", path+".baseURL"
	switch {
	case c.Unusable(owner) || c.Unusable(installation): // one is given
	case app.Owner != "" && app.InstallationID != nil:
		c.Found(owner, "keep one", "is given beside installationId, and each says which installation it is")
	case app.Owner == "" && app.InstallationID == nil:
		c.Found(path, "add one of the two", "has neither installationId nor owner")
	case app.Owner != "" && c.GitOps.ByFlux() && olderThan(c.GitOps.Flux.Version, 2, 8): // source-controller reads it from 1.8 on
		c.Found(owner, "write installationId in its place, or a newer gitops.flux.version", "is not read by Flux %s, only from 2.8 on",
			c.GitOps.Flux.Version)
	case app.Owner != "" && c.GitOps.ByArgoCD() && olderThan(c.GitOps.ArgoCD.Version, 9, 4): // Argo CD 3.3
		c.Found(owner, "write installationId in its place, or a newer gitops.argocd.version",
			"is not read by Argo CD of chart %s, only from 9.4 on", c.GitOps.ArgoCD.Version)
	}
	host := urlOf(c.GitOps.URL).Host
	given := urlOf(app.BaseURL)
	switch {
	case app.BaseURL == "" && host != "github.com":
		c.Found(api, "write the URL of its API, such as https://"+host+"/api/v3", "is missing, and %s is not github.com", host)
	case app.BaseURL == "":
	case host == "github.com" && given.Host != "api.github.com":
		c.Found(api, "remove it", "%s is not the API of github.com", app.BaseURL)
	case host != "github.com" && given.Host == "api.github.com":
		c.Found(api, "write the URL of its API, such as https://"+host+"/api/v3", "%s is not the API of %s", app.BaseURL, host)
	case given.Host == host && strings.TrimSuffix(given.Path, "/") != "/api/v3":
		c.Found(api, "write https://"+host+"/api/v3", "%s is not the API of %s", app.BaseURL, host)
	}
}

// urlOf parses a URL whose form is checked elsewhere. Of a text that is none, the result is empty.
func urlOf(text string) *url.URL {
	parsed, err := url.Parse(text)
	if err != nil {
		return &url.URL{}
	}
	return parsed
}
