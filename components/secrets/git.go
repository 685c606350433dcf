package secrets

import (
	"strconv"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// Names of the Secrets with Flux's access to its source, by the kind of source: a Secret's type cannot be changed.
const (
	gitSecret    = "flux-system"
	ociSecret    = "flux-oci"
	bucketSecret = "flux-bucket"
	caSecret     = "flux-source-ca" //nolint:gosec // the name of a Secret
	imagesSecret = "flux-images"
)

// dockerConfig is the type of a Secret with the login of a registry.
const dockerConfig = "kubernetes.io/dockerconfigjson"

// GitCredentials are Flux's access to its source, and to the images of its controllers.
type GitCredentials struct {
	GitOps  cluster.GitOps  // the source, and the settings of the access; required
	Secrets cluster.Secrets // with the secrets that the access needs; required
}

func (g *GitCredentials) incomplete() bool {
	for _, one := range g.Secrets.OfSource(g.GitOps.Access()) {
		if !one.Secret.IsSet() {
			return true
		}
	}
	return g.GitOps.Source().URL == ""
}

// provideGit creates the Secrets that Flux's source and the pods of its controllers refer to, as far as they need any.
func (s *SecretsFoundation) provideGit(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, args *SecretsFoundationArgs, opts pulumi.ResourceOption,
) error {
	if args.Git == nil {
		return nil
	}
	git, login := args.Git.GitOps, args.Git.Secrets.FluxRegistryConfig
	made := []fluxSecret{}
	switch git.Source().Kind {
	case cluster.SourceGit:
		made = append(made, fluxSecret{of: &s.GitSecret, suffix: "-git", name: gitSecret, data: args.Git.data()})
	case cluster.SourceOCI:
		made = append(made, fluxSecret{of: &s.GitSecret, suffix: "-oci", name: ociSecret, kind: dockerConfig, data: args.Git.data()})
	case cluster.SourceBucket:
		made = append(made, fluxSecret{of: &s.GitSecret, suffix: "-bucket", name: bucketSecret, data: args.Git.data()})
	}
	if git.CA != "" && git.Source().Kind != cluster.SourceGit {
		made = append(made, fluxSecret{of: &s.CASecret, suffix: "-source-ca", name: caSecret,
			data: pulumi.StringMap{"ca.crt": plain(string(git.CA))}})
	}
	if login.IsSet() {
		made = append(made, fluxSecret{of: &s.ImagesSecret, suffix: "-images", name: imagesSecret, kind: dockerConfig,
			data: pulumi.StringMap{".dockerconfigjson": hidden(login)}})
	}
	for _, one := range made {
		if len(one.data) == 0 {
			continue
		}
		*one.of = one.name
		meta := metav1.ObjectMetaArgs{Name: pulumi.String(one.name)}
		if one.name == gitSecret {
			// `flux bootstrap` makes a Secret of that name. A Flux that is taken over gets the stack's access instead.
			meta.Annotations = pulumi.StringMap{"pulumi.com/patchForce": pulumi.String("true")}
		}
		if _, err := s.typedSecret(ctx, name+one.suffix, namespace, one.kind, meta, one.data, opts); err != nil {
			return err
		}
	}
	return nil
}

// fluxSecret is a Secret in Flux's namespace.
type fluxSecret struct {
	of           *string // where the foundation keeps its name
	suffix, name string  // of the resource; of the Secret
	kind         string  // type of the Secret; "" means Opaque
	data         pulumi.StringMap
}

// data returns the Secret's data under the names that Flux's source-controller reads. A public source needs none, except for the CA of
// a Git host.
func (g *GitCredentials) data() pulumi.StringMap {
	git, data := g.GitOps, pulumi.StringMap{}
	var given []pulumi.StringOutput
	for _, one := range g.Secrets.OfSource(git.Access()) {
		given = append(given, hidden(one.Secret))
	}
	if git.CA != "" && git.Source().Kind == cluster.SourceGit {
		data["ca.crt"] = plain(string(git.CA))
	}
	switch git.Access() {
	case cluster.GitByPassword:
		data["username"], data["password"] = plain(git.Username), given[0]
	case cluster.GitBySSH:
		data["identity"], data["known_hosts"] = given[0], plain(string(git.KnownHosts))
	case cluster.GitByApp:
		app := git.GitHubApp
		data["githubAppID"], data["githubAppPrivateKey"] = plain(strconv.Itoa(app.ID)), given[0]
		if app.InstallationID != nil {
			data["githubAppInstallationID"] = plain(strconv.Itoa(*app.InstallationID))
		}
		if app.Owner != "" {
			data["githubAppInstallationOwner"] = plain(app.Owner)
		}
		if app.BaseURL != "" {
			data["githubAppBaseURL"] = plain(app.BaseURL)
		}
	case cluster.OCIByLogin:
		data[".dockerconfigjson"] = given[0]
	case cluster.BucketByKeys:
		data["accesskey"], data["secretkey"] = given[0], given[1]
	case cluster.Public:
	}
	return data
}
