package secrets

import (
	"encoding/base64"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// GitCredentials are Flux's credentials for its repository over HTTPS.
type GitCredentials struct {
	Namespace string         // namespace of the Secret, which this component creates; required
	Name      string         // name of the Secret; required
	Username  string         // user of the Git host; required
	Password  cluster.Secret // the user's password or token; required
}

// provideGit creates the namespace, and the Secret in the form that Flux's GitRepository reads.
func (s *SecretsFoundation) provideGit(ctx *pulumi.Context, name string, git *GitCredentials, opts pulumi.ResourceOption) error {
	namespace, err := v1.NewNamespace(ctx, name+"-git-namespace", &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(git.Namespace)},
	}, opts)
	if err != nil {
		return err
	}
	secret, err := v1.NewSecret(ctx, name+"-git", &v1.SecretArgs{
		Metadata: metav1.ObjectMetaArgs{
			Name:      pulumi.String(git.Name),
			Namespace: namespace.Metadata.Name().Elem(),
		},
		// data instead of stringData: the API server returns data, so that a refresh finds no difference.
		Data: pulumi.StringMap{
			"username": pulumi.String(encode(git.Username)),
			"password": pulumi.ToSecret(pulumi.String(encode(git.Password.Reveal()))).(pulumi.StringOutput),
		},
	}, opts)
	if err != nil {
		return err
	}
	s.leaves = append(s.leaves, namespace, secret)
	return nil
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
