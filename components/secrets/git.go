package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// GitCredentials let Flux fetch its repository over HTTPS.
type GitCredentials struct {
	Namespace string // Kubernetes namespace of the Secret, made here; required
	Name      string // name of the Secret; required
	Username  string // user of the Git host; required

	// Password is the user's password or token. It is plain here so that its shape is checked before anything is
	// created, and secret from the first resource on; required.
	Password string
}

// Validate names every problem of the shape, and never shows the password.
func (g *GitCredentials) Validate() error {
	var problems []error
	for _, field := range []struct{ name, value string }{{"namespace", g.Namespace}, {"name", g.Name}} {
		if field.value == "" {
			problems = append(problems, fmt.Errorf("git.%s: missing; give one", field.name))
		}
	}
	switch {
	case g.Username == "":
		problems = append(problems, errors.New("git.username: missing; give the user that the password belongs to"))
	case strings.Contains(g.Username, ":"):
		problems = append(problems, fmt.Errorf("git.username: %q has a colon, where HTTP would cut it; give the name alone", g.Username))
	}
	switch {
	case g.Password == "":
		problems = append(problems, errors.New("git.password: missing; give a password or token"))
	case strings.TrimSpace(g.Password) != g.Password:
		problems = append(problems, errors.New("git.password: begins or ends with white space; set it again without, for instance with printf instead of echo"))
	case strings.ContainsFunc(g.Password, unicode.IsControl):
		problems = append(problems, errors.New("git.password: has a line break or control character in it; give a single-line password or token"))
	case strings.Contains(g.Password, "://"):
		problems = append(problems, errors.New("git.password: is a URL; give the password or token alone"))
	}
	return errors.Join(problems...)
}

// provideGit makes the namespace and the Secret in the form that Flux's GitRepository reads.
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
		// data, not stringData: it is what the API server gives back, so that a refresh finds no difference.
		Data: pulumi.StringMap{
			"username": pulumi.String(encode(git.Username)),
			"password": pulumi.ToSecret(pulumi.String(encode(git.Password))).(pulumi.StringOutput),
		},
	}, opts)
	if err != nil {
		return err
	}
	s.leaves = append(s.leaves, namespace, secret)
	return nil
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
