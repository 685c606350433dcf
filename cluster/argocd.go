package cluster

import (
	_ "embed"
	"strconv"
	"strings"
)

// Engine applies the repository in the cluster.
type Engine string

// The engines.
const (
	EngineFlux   Engine = "flux"
	EngineArgoCD Engine = "argocd"
)

// Choices lists the engines.
func (Engine) Choices() []string { return texts(EngineFlux, EngineArgoCD) }

// Owner returns the engine as the owner of a component.
func (e Engine) Owner() Owner {
	if e == EngineArgoCD {
		return OwnerArgoCD
	}
	return OwnerFlux
}

// Names in a cluster that Slipway, Argo CD and the tree agree on.
const (
	ArgoCDNamespace = "argocd"           // of Argo CD, the cluster settings, and the Applications
	ArgoCDRelease   = "argocd"           // the Helm release of Argo CD
	ArgoCDProject   = "default"          // the AppProject of the root Application, which Argo CD's API server makes
	ArgoCDRoot      = "root"             // the root Application
	ArgoCDPlugin    = "cluster-settings" // the plugin that renders manifests with the cluster settings
)

// ArgoCD is the Argo CD that is installed with `gitops.engine: argocd`.
type ArgoCD struct {
	// Version of the chart argo-cd, 9.1 or newer.
	//
	// renovate: datasource=helm depName=argo-cd registryUrl=https://argoproj.github.io/argo-helm
	Version string `json:"version" form:"chart-version" default:"10.8.0"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://argoproj.github.io/argo-helm" example:"https://charts.example.com/argo"`
	// Run every component of Argo CD that serves requests twice, and Redis three times. It needs three nodes that take pods.
	HighAvailability bool `json:"highAvailability" example:"true"`
	// Use the access to the repository for every repository whose URL begins with this, too, as a credential template of Argo CD: for
	// Applications with sources of their own. `gitops.url` must begin with it.
	CredentialsFor string `json:"credentialsFor" form:"git-url" example:"https://git.home.arpa/platform"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. Dex and the notifications controller are off unless `dex.enabled` or `notifications.enabled` is set here.
	Values ChartValues `json:"values" example:"{server: {ingress: {enabled: true}}}"`
	Owned
}

// ByFlux reports whether the cluster is handed over to Flux.
func (g GitOps) ByFlux() bool { return g.Enabled && g.Engine != EngineArgoCD }

// ByArgoCD reports whether the cluster is handed over to Argo CD.
func (g GitOps) ByArgoCD() bool { return g.Enabled && g.Engine == EngineArgoCD }

// engineService returns the release of the engine: flux-operator's or Argo CD's.
func (c *Cluster) engineService() Service {
	if c.GitOps.ByArgoCD() {
		return c.ArgoCDService()
	}
	return c.GitOps.Operator.Service()
}

// ArgoCDService returns Argo CD's release.
func (c *Cluster) ArgoCDService() Service {
	a := c.GitOps.ArgoCD
	service := Service{
		Key: "gitops.argocd", Name: ArgoCDRelease, Namespace: ArgoCDNamespace, Chart: "argo-cd", Version: a.Version, Repository: a.Repository,
		Values: c.argoCDValues(), UserValues: a.Values, Owner: a.Owner,
		Needed: []Needed{
			{"crds.install", true, "leaves out the CRD of Applications, with which Slipway hands the cluster over"},
			{"configs.cm.create", true, "leaves out Argo CD's configuration"},
			{"configs.params.create", true, "leaves out the parameters of Argo CD's components"},
			{"configs.secret.createSecret", true, "leaves Argo CD's API server without its key"},
			{"controller.replicas", 1, "leaves nothing that applies the repository"},
			{"repoServer.replicas", 1, "leaves nothing that reads the repository"},
			{"server.replicas", 1, "leaves nothing that makes the project " + ArgoCDProject},
			{"configs.ssh.create", true, "leaves out the known hosts"}, {"configs.tls.create", true, "leaves out gitops.ca"},
			{"redisSecretInit.enabled", true, "leaves Redis without its password"},
			{"createClusterRoles", true, "leaves Argo CD without the right to apply objects of all namespaces"},
		},
	}
	values, _ := a.Values.Tree()
	if ValueAt(values, "externalRedis.host") == nil && ValueAt(values, "redis-ha.enabled") != true && !a.HighAvailability {
		service.Needed = append(service.Needed, Needed{"redis.enabled", true, "leaves Argo CD without the cache that it needs"})
	}
	return service
}

// applicationHealth is the health of an Application for the one above it: that of its objects. One that is out of sync is progressing, so
// that a later wave waits for it, unless somebody syncs it by hand. One that cannot be synced is degraded: otherwise the sync above it
// would wait for ever, at the commit at which it began.
//
//go:embed argocd/health.lua
var applicationHealth string

// substitution is the script of the plugin that renders manifests with the cluster settings.
//
//go:embed argocd/substitute.sh
var substitution string

// ArgoCDPluginKnows returns the keys that the plugin knows in a part of a HelmRelease (spec, driftDetection, install, upgrade or chart) or
// in the spec of its HelmRepository (repository). It refuses others.
func ArgoCDPluginKnows(part string) []string {
	_, after, _ := strings.Cut(substitution, "\n  "+part+" => [qw(")
	keys, _, _ := strings.Cut(after, ")]")
	return strings.Fields(keys)
}

// settingsFolder is where the plugin's container has the cluster settings.
const settingsFolder = "/settings"

// valuesFolder is where the container has what Slipway sets in the charts of the releases that Argo CD owns: a file for each release, with
// the name of its Secret.
const valuesFolder = "/values"

// pluginScript is the variable of the plugin's container with the script. Argo CD quotes the whole command in each error, before what went
// wrong, so the command is short.
const pluginScript = "CLUSTER_SETTINGS_PLUGIN"

// argoCDValues returns the values that Slipway sets.
func (c *Cluster) argoCDValues() mapping {
	a := c.GitOps.ArgoCD
	given, _ := a.Values.Tree()
	configs := mapping{
		"cm": mapping{
			"application.resourceTrackingMethod":                     "annotation",
			"timeout.reconciliation":                                 strconv.Itoa(int(c.GitOps.Interval.Seconds())) + "s",
			"resource.customizations.health.argoproj.io_Application": applicationHealth,
		},
		"params": mapping{
			// What the API server would make of an object decides whether it is in sync: defaults and webhooks are no difference.
			"controller.diff.server.side": true,
			// The health of each object stays in the Application, where slipway-probe reads it.
			"controller.resource.health.persist": true,
			// A plugin gets a copy of the repository for each Application, and needs nothing of its history.
			"reposerver.plugin.tar.exclusions": ".git",
		},
		"cmp": mapping{"create": true, "plugins": mapping{ArgoCDPlugin: mapping{
			"generate": mapping{"command": []string{"bash", "-c", `eval "$` + pluginScript + `"`}},
		}}},
	}
	if hosts := c.GitOps.KnownHosts; hosts != "" {
		configs["ssh"] = mapping{"extraHosts": string(hosts)}
	}
	if ca := c.GitOps.CA; ca != "" {
		configs["tls"] = mapping{"certificates": mapping{urlOf(c.GitOps.URL).Hostname(): string(ca)}} // without a port
	}
	values := mapping{
		"configs": configs, "repoServer": c.repoServer(),
		// Otherwise, the repo-server repeats the error of a rendering that has failed three times for an hour, or until it is asked anew.
		"global": mapping{"env": []mapping{{"name": "ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS", "value": "0"}}},
	}
	for _, part := range []string{"dex", "notifications"} { // neither does anything without a configuration
		if ValueAt(given, part+".enabled") == nil {
			values[part] = mapping{"enabled": false}
		}
	}
	if a.HighAvailability {
		redis := mapping{"enabled": true}
		// On three nodes, a new pod of Redis's proxy gets no place beside the three old ones, of which none may go before it is ready: with the
		// chart's own strategy, no rollout ends (https://github.com/argoproj/argo-cd/issues/16627).
		if ValueAt(given, "redis-ha.haproxy.deploymentStrategy") == nil {
			redis["haproxy"] = mapping{"deploymentStrategy": mapping{"rollingUpdate": mapping{"maxSurge": 0, "maxUnavailable": 1}}}
		}
		values["redis-ha"] = redis
		for _, part := range []string{"server", "applicationSet"} {
			values[part] = mapping{"replicas": 2}
		}
	}
	return values
}

// repoServer returns the values of the component that renders manifests, with the plugin's container. A changed setting restarts it,
// because a container sees a changed ConfigMap a minute later.
func (c *Cluster) repoServer() mapping {
	mount := func(name, path string) mapping { return mapping{"name": name, "mountPath": path} }
	const config, temporary, ownedValues = "cluster-settings-plugin", "cluster-settings-tmp", "slipway-values"
	plugin := mount(config, "/home/argocd/cmp-server/config/plugin.yaml")
	plugin["subPath"] = ArgoCDPlugin + ".yaml"
	env := []any{
		mapping{"name": "SETTINGS_DIR", "value": settingsFolder}, mapping{"name": "VALUES_DIR", "value": valuesFolder},
		mapping{"name": pluginScript, "value": substitution},
	}
	given, _ := c.GitOps.ArgoCD.Values.Tree()
	proxy, _ := ValueAt(given, "repoServer.env").([]any) // or something else without which charts cannot be pulled
	env = append(env, proxy...)
	values := mapping{
		"podAnnotations": mapping{AnnotationReads: c.Settings()[ArgoCDChecksum]},
		"volumes": []mapping{
			{"name": config, "configMap": mapping{"name": "argocd-cmp-cm"}},
			{"name": ClusterSettings, "configMap": mapping{"name": ClusterSettings}},
			{"name": temporary, "emptyDir": mapping{}},
			{"name": ownedValues, "projected": mapping{"sources": c.ownedByArgoCD()}},
		},
		"extraContainers": []mapping{{
			"name": ArgoCDPlugin,
			"image": "{{ default .Values.global.image.repository .Values.repoServer.image.repository }}:" +
				`{{ default (include "argo-cd.defaultTag" .) .Values.repoServer.image.tag }}`,
			"command": []string{"/var/run/argocd/argocd-cmp-server"},
			"env":     env,
			"securityContext": mapping{
				"runAsNonRoot": true, "runAsUser": 999, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
				"capabilities": mapping{"drop": []string{"ALL"}}, "seccompProfile": mapping{"type": "RuntimeDefault"},
			},
			"volumeMounts": []mapping{
				mount("var-files", "/var/run/argocd"), mount("plugins", "/home/argocd/cmp-server/plugins"), plugin,
				mount(ClusterSettings, settingsFolder), mount(ownedValues, valuesFolder), mount(temporary, "/tmp"),
			},
		}},
	}
	if c.GitOps.ArgoCD.HighAvailability {
		values["replicas"] = 2
	}
	return values
}

// ownedByArgoCD returns the sources of the volume with the values of the releases that Argo CD owns. It names every release, so that the
// repo-server does not restart when one of them changes its owner; Argo CD could not render its own release otherwise.
func (c *Cluster) ownedByArgoCD() (sources []mapping) {
	releases := append(c.allServices(), c.Cilium.Service(), Service{Name: ArgoCDRelease})
	for _, release := range append(releases, c.Providers.Services()...) {
		secret := ValuesSecret(release.Name)
		sources = append(sources, mapping{"secret": mapping{
			"name": secret, "optional": true, "items": []mapping{{"key": ValuesKey, "path": secret}},
		}})
	}
	return sources
}

// ArgoCDChecksum is the setting that changes with all others. A source of an Application has it in the variables of its plugin, so that
// Argo CD takes no manifest from its cache that was rendered with other settings.
const ArgoCDChecksum = "SETTINGS_CHECKSUM"

// argoCD checks that nothing is declared that only Flux can do, and what Argo CD itself needs.
func (c clusterCheck) argoCD() {
	if c.Unusable("gitops.engine") {
		return
	}
	g := c.GitOps
	c.owners()
	given, _ := g.ArgoCD.Values.Tree()
	if ValueAt(given, "namespaceOverride") != nil {
		c.Found("gitops.argocd.values.namespaceOverride", "remove it", elsewhere)
	}
	var plain GitOps
	SetDefaults(&plain)
	if g.ByFlux() && !same(g.ArgoCD, plain.ArgoCD) {
		c.Found("gitops.argocd", "remove it, or write gitops.engine: argocd", "is for Argo CD, and gitops.engine is flux")
	}
	if !g.ByArgoCD() {
		return
	}
	if olderThan(g.ArgoCD.Version, 9, 1) { // whose CRD the API server compares the root Application with
		c.Found("gitops.argocd.version", "write 9.1.0 or newer",
			"%s brings the CRD of an Argo CD before 3.2, without spec.syncPolicy.retry.refresh of the root Application", g.ArgoCD.Version)
	}
	const forFlux = "is for Flux, and gitops.engine is argocd"
	c.refuse("write gitops.url", "is a source that Slipway gives to Flux only, and gitops.engine is argocd",
		oneKey{"gitops.oci", g.OCI != nil}, oneKey{"gitops.bucket", g.Bucket != nil})
	c.refuse("remove it", forFlux,
		oneKey{"gitops.operator", !same(g.Operator, plain.Operator)}, oneKey{"gitops.flux", !same(g.Flux, DefaultFlux())})
	c.unset(forFlux, NamedSecret{"fluxRegistryConfig", c.FluxRegistryConfig}, NamedSecret{"sopsAgeKey", c.SOPSAgeKey})
	if c.Storage.Vault != "" {
		c.Found("storage.vault", "remove it", "is filled by layers of Flux, and gitops.engine is argocd")
	}
	if g.ArgoCD.HighAvailability && len(c.PodMachines()) < 3 {
		c.Found("gitops.argocd.highAvailability", "remove it, or declare three machines that take pods",
			"needs three nodes that take pods, one for each Redis, and this cluster has %d", len(c.PodMachines()))
	}
	if prefix := g.ArgoCD.CredentialsFor; prefix != "" && g.URL != "" && !c.Unusable("gitops.argocd.credentialsFor") {
		switch {
		case g.Access() == Public:
			c.Found("gitops.argocd.credentialsFor", "remove it", "needs an access to the repository, and gitops.public is true")
		case !strings.HasPrefix(g.URL, strings.TrimSuffix(prefix, "/")+"/"):
			c.Found("gitops.argocd.credentialsFor", "write the part of gitops.url before one of its slashes",
				"gitops.url does not begin with %s/", strings.TrimSuffix(prefix, "/"))
		}
	}
	account, _, _ := strings.Cut(strings.TrimPrefix(urlOf(g.URL).Path, "/"), "/")
	if app := g.GitHubApp; app != nil && app.Owner != "" && g.URL != "" && !strings.EqualFold(app.Owner, account) {
		c.Found("gitops.githubApp.owner", "write installationId in its place",
			"%s is not the account in gitops.url, with which Argo CD looks for the installation", app.Owner)
	}
}

// owners checks that no component belongs to the other engine.
func (c clusterCheck) owners() {
	if !c.GitOps.Enabled {
		return
	}
	own := c.GitOps.Engine.Owner()
	for _, release := range c.Releases() {
		if release.Owner.IsEngine() && release.Owner != own {
			c.Found(release.Key+".owner", "write "+string(own), "%s is not the engine of the cluster, which gitops.engine says is %s",
				release.Owner, c.GitOps.Engine)
		}
	}
}

// adviseEngine warns of an engine that owns itself and is switched off: Pulumi leaves it installed, and the other engine refuses the
// cluster.
func (c clusterCheck) adviseEngine() {
	if g := c.GitOps; !g.Enabled {
		c.refuse("write pulumi, run `up`, and then write gitops.enabled: false", "lets the engine own itself, so that "+
			"gitops.enabled: false does not uninstall it", oneKey{"gitops.argocd.owner", g.ArgoCD.Owner.IsEngine()},
			oneKey{"gitops.operator.owner", g.Operator.Owner.IsEngine()})
	}
}

// same reports whether two sections say the same.
func same[T any](a, b T) bool { return asJSON(a) == asJSON(b) }
