package secrets

import (
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// Names of the Secrets. Those with Flux's access to its source are named by the kind of source: a Secret's type cannot be changed.
const (
	gitSecret    = "flux-system"
	ociSecret    = "flux-oci"
	bucketSecret = "flux-bucket"
	caSecret     = "flux-source-ca"
	imagesSecret = "flux-images"
	ageSecret    = "sops-age"
)

// dockerConfig is the type of a Secret with the login of a registry, and the key in it.
const (
	dockerConfig    = "kubernetes.io/dockerconfigjson"
	dockerConfigKey = ".dockerconfigjson"
)

// Flux is what Flux needs before it starts: access to its source and to its controllers' images, and keys for decryption.
type Flux struct {
	GitOps cluster.GitOps         // the source, and the settings of the access; required
	Access []cluster.SourceSecret // those that the access needs
	Images cluster.Secret         // login for the images of Flux's controllers, a Docker configuration; optional
	Age    cluster.Secret         // keys of age in the form of age-keygen's file; optional

	Before pulumi.ResourceOption // option of the Secrets, as of NewNamespace; optional
}

// provideFlux creates the Secrets that Flux's source, the pods of its controllers and its decryption refer to.
func (s *SecretsFoundation) provideFlux(
	ctx *pulumi.Context, name string, namespace pulumi.StringPtrInput, flux *Flux, opts pulumi.ResourceOption,
) error {
	source, ca, images, age := flux.source(), flux.sourceCA(), flux.images(), flux.age()
	s.Flux = cluster.FluxSecrets{Source: source.name, CA: ca.name, Images: images.name, Decryption: age.name}
	for _, one := range []firstSecret{source, ca, images, age} {
		if one.name == "" {
			continue
		}
		if _, err := s.secret(ctx, name, namespace, one, opts); err != nil {
			return err
		}
	}
	return nil
}

// source returns the Secret with the access to the source; the zero one if there is nothing in it.
func (f *Flux) source() firstSecret {
	data := f.data()
	switch kind := f.GitOps.Source().Kind; {
	case len(data) == 0:
		return firstSecret{}
	case kind == cluster.SourceOCI:
		return firstSecret{suffix: "-oci", name: ociSecret, kind: dockerConfig, data: data}
	case kind == cluster.SourceBucket:
		return firstSecret{suffix: "-bucket", name: bucketSecret, data: data}
	}
	// `flux bootstrap` makes a Secret of that name, too. A Flux that is taken over gets the stack's access instead.
	return firstSecret{suffix: "-git", name: gitSecret, data: data}
}

// data returns the data of the source's Secret under the keys that Flux's source-controller reads. A public source needs none, except for
// the CA of a Git host.
func (f *Flux) data() pulumi.StringMap {
	git, data := f.GitOps, pulumi.StringMap{}
	for _, one := range f.Access {
		data[one.FluxKey] = hidden(one.Secret)
	}
	if git.CA != "" && git.Source().Kind == cluster.SourceGit {
		data["ca.crt"] = plain(string(git.CA))
	}
	switch git.Access() {
	case cluster.GitByPassword:
		data["username"] = plain(git.Username)
	case cluster.GitBySSH:
		data["known_hosts"] = plain(string(git.KnownHosts))
	case cluster.GitByApp:
		app := git.GitHubApp
		data["githubAppID"] = plain(strconv.Itoa(app.ID))
		if app.InstallationID != nil {
			data["githubAppInstallationID"] = plain(strconv.Itoa(*app.InstallationID))
		}
		if app.Owner != "" {
			data["githubAppInstallationOwner"] = plain(app.Owner)
		}
		if app.BaseURL != "" {
			data["githubAppBaseURL"] = plain(app.BaseURL)
		}
	case cluster.OCIByLogin, cluster.BucketByKeys, cluster.Public:
	}
	return data
}

// sourceCA returns the Secret with the CA of a registry or a bucket; the zero one without.
func (f *Flux) sourceCA() firstSecret {
	if f.GitOps.CA == "" || f.GitOps.Source().Kind == cluster.SourceGit {
		return firstSecret{}
	}
	return firstSecret{suffix: "-source-ca", name: caSecret, data: pulumi.StringMap{"ca.crt": plain(string(f.GitOps.CA))}}
}

// images returns the Secret with the login for the images of Flux's controllers; the zero one without.
func (f *Flux) images() firstSecret {
	if !f.Images.IsSet() {
		return firstSecret{}
	}
	return firstSecret{suffix: "-images", name: imagesSecret, kind: dockerConfig, data: pulumi.StringMap{dockerConfigKey: hidden(f.Images)}}
}

// age returns the Secret that the decryption of a Kustomization refers to; the zero one without.
func (f *Flux) age() firstSecret {
	if !f.Age.IsSet() {
		return firstSecret{}
	}
	return firstSecret{
		suffix: "-age", name: ageSecret,
		// Flux uses a changed key at once, not at the next interval of each Kustomization.
		labels: pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")},
		// Flux's kustomize-controller reads keys of age from every name that ends in .agekey.
		data: pulumi.StringMap{"age.agekey": hidden(f.Age)},
	}
}
