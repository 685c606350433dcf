package secrets

import (
	"strconv"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// gitSecret is the name of the Secret with Flux's access to its repository.
const gitSecret = "flux-system"

// GitCredentials are Flux's access to its repository.
type GitCredentials struct {
	GitOps  cluster.GitOps  // the repository, and the settings of the access; required
	Secrets cluster.Secrets // with the secret that the access needs; required
}

func (g *GitCredentials) incomplete() bool {
	key, secret := g.Secrets.OfGit(g.GitOps.Access())
	return g.GitOps.URL == "" || key != "" && !secret.IsSet()
}

// provideGit creates the Secret that Flux's GitRepository reads, unless Flux needs none.
func (s *SecretsFoundation) provideGit(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, args *SecretsFoundationArgs, opts pulumi.ResourceOption,
) error {
	if args.Git == nil {
		return nil
	}
	data := args.Git.data()
	if len(data) == 0 {
		return nil
	}
	s.GitSecret = gitSecret
	return s.provide(ctx, name+"-git", namespace, metav1.ObjectMetaArgs{Name: pulumi.String(gitSecret)}, data, opts)
}

// data returns the Secret's data under the names that Flux's source-controller reads. A public repository needs none, except for a CA.
func (g *GitCredentials) data() pulumi.StringMap {
	git, data := g.GitOps, pulumi.StringMap{}
	_, secret := g.Secrets.OfGit(git.Access())
	hidden := hidden(secret)
	if git.CA != "" {
		data["ca.crt"] = plain(string(git.CA))
	}
	switch git.Access() {
	case cluster.GitByPassword:
		data["username"], data["password"] = plain(git.Username), hidden
	case cluster.GitBySSH:
		data["identity"], data["known_hosts"] = hidden, plain(string(git.KnownHosts))
	case cluster.GitByApp:
		app := git.GitHubApp
		data["githubAppID"], data["githubAppPrivateKey"] = plain(strconv.Itoa(app.ID)), hidden
		if app.InstallationID != nil {
			data["githubAppInstallationID"] = plain(strconv.Itoa(*app.InstallationID))
		}
		if app.Owner != "" {
			data["githubAppInstallationOwner"] = plain(app.Owner)
		}
		if app.BaseURL != "" {
			data["githubAppBaseURL"] = plain(app.BaseURL)
		}
	case cluster.GitPublic:
	}
	return data
}
