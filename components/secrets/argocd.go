package secrets

import (
	"cmp"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// repositorySecret is the name of the Secret with Argo CD's access to the repository.
const repositorySecret = "cluster-repository"

// ArgoCD is what Argo CD needs before it starts: access to its repository.
type ArgoCD struct {
	GitOps cluster.GitOps         // the repository, and the settings of the access; required
	Access []cluster.SourceSecret // those that the access needs

	Before pulumi.ResourceOption // option of the Secret; optional
}

// argoCDKeys are the keys of a repository's Secret, by the keys of the stack file's secrets: docs/operator-manual/declarative-setup.md of
// Argo CD, and its util/db/repository_secrets.go.
var argoCDKeys = map[string]string{
	"gitPassword": "password", "gitIdentity": "sshPrivateKey", "githubAppPrivateKey": "githubAppPrivateKey",
}

// provideArgoCD creates the Secret that declares the repository to Argo CD, or all repositories whose URLs have a common beginning.
func (s *SecretsFoundation) provideArgoCD(
	ctx *pulumi.Context, name string, namespace pulumi.StringPtrInput, argocd *ArgoCD, opts pulumi.ResourceOption,
) error {
	of := "repository"
	if argocd.GitOps.ArgoCD.CredentialsFor != "" {
		of = "repo-creds"
	}
	_, err := s.secret(ctx, name, namespace, firstSecret{
		suffix: "-repository", name: repositorySecret, data: argocd.data(),
		labels: pulumi.StringMap{"argocd.argoproj.io/secret-type": pulumi.String(of)},
	}, opts)
	return err
}

// data returns the data of the repository's Secret. Of a public repository, it is the URL alone.
func (a *ArgoCD) data() pulumi.StringMap {
	git := a.GitOps
	data := pulumi.StringMap{"type": plain("git"), "url": plain(cmp.Or(git.ArgoCD.CredentialsFor, git.URL))}
	for _, one := range a.Access {
		data[argoCDKeys[one.Key]] = hidden(one.Secret)
	}
	switch git.Access() {
	case cluster.GitByPassword:
		data["username"] = plain(git.Username)
	case cluster.GitByApp:
		app := git.GitHubApp
		data["githubAppID"] = plain(strconv.Itoa(app.ID))
		if app.InstallationID != nil { // otherwise, Argo CD looks for the installation of the account in the URL
			data["githubAppInstallationID"] = plain(strconv.Itoa(*app.InstallationID))
		}
		if app.BaseURL != "" {
			data["githubAppEnterpriseBaseUrl"] = plain(app.BaseURL)
		}
	case cluster.GitBySSH, cluster.OCIByLogin, cluster.BucketByKeys, cluster.Public:
	}
	return data
}
