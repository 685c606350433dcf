package secrets

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/service"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Names of objects. The GitOps tree's ExternalSecrets refer to the store.
const (
	storeName   = "onepassword"       // ClusterSecretStore
	tokenSecret = "onepassword-token" // Secret with the token for the Connect server
	tokenKey    = "token"             // its key

	storageStoreName   = "onepassword-storage" // ClusterSecretStore of the shared storage's vault
	storageTokenSecret = "onepassword-storage-token"
	probeName          = "slipway-probe" // ExternalSecret and SealedSecret, and the Secrets that are made of them
	externalAPI        = "external-secrets.io/v1"
)

// OnePassword is a 1Password Connect server, and External Secrets Operator with access to it.
type OnePassword struct {
	Settings    cluster.OnePassword // required
	Credentials cluster.Secret      // 1password-credentials.json; required
	Token       cluster.Secret      // for the Connect server; required
	Storage     *StorageVault       // nil if the cluster has no part in a storage, or not through 1Password
}

// StorageVault is the vault by which a storage's provider tells its consumers how to connect. It has a store and a token of its own,
// because its items give access to all volumes.
type StorageVault struct {
	Vaults  []string       // names or ids; with an operator that has one client for all stores, the other store's
	Token   cluster.Secret // for the Connect server, with access to this vault alone; likewise
	Readers []string       // the namespaces that may use the store
}

func (o *OnePassword) validate() error {
	if len(o.Settings.Vaults) == 0 || !o.Credentials.IsSet() || !o.Token.IsSet() {
		return errors.New("onePassword: is incomplete; give the section, the credentials and the token")
	}
	if one := o.Storage; one != nil && (len(one.Vaults) == 0 || !one.Token.IsSet() || len(one.Readers) == 0) {
		return errors.New("onePassword.storage: is incomplete; give the vault, its token and the namespaces that use it")
	}
	return nil
}

// provide creates the credentials, installs the Connect server and then the operator, creates the store, and waits until an item was read.
func (o *OnePassword) provide(ctx *pulumi.Context, name string, s *SecretsFoundation, args *SecretsFoundationArgs) error {
	stays := o.Settings.Connect.Owner.IsEngine() || o.Settings.Operator.Owner.IsEngine()
	namespace, err := v1.NewNamespace(ctx, name+"-external-secrets-namespace", &v1.NamespaceArgs{
		Metadata: metav1.ObjectMetaArgs{Name: pulumi.String(cluster.ExternalSecretsNamespace)},
	}, args.Child(s, pulumi.RetainOnDelete(stays)))
	if err != nil {
		return err
	}
	stores, err := o.stores(ctx, name, namespace, s, args)
	if err != nil {
		return err
	}
	reads, err := custom(ctx, name+"-onepassword-item", externalAPI, "ExternalSecret", metav1.ObjectMetaArgs{
		Name: pulumi.String(probeName), Namespace: namespace.Metadata.Name().Elem(),
	}, o.reads(), args.Child(s, pulumi.DependsOn(stores)))
	if err != nil {
		return err
	}
	run, err := step.New(ctx, name+"-onepassword-probe", step.Args{
		Run: step.Run{
			Subcommand: "external-secrets", Spec: o.spec(args), Timeout: args.Timeout,
			Provider: args.CommandProvider, DependsOn: []pulumi.Resource{reads}, DeletedWith: args.DeletedWith,
		},
		Triggers: o.triggers(),
	}, s)
	if err != nil {
		return err
	}
	s.leaves = append(s.leaves, run)
	return nil
}

// stores installs what the stores need, and creates them.
func (o *OnePassword) stores(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, s *SecretsFoundation, args *SecretsFoundationArgs,
) ([]pulumi.Resource, error) {
	operator, err := o.install(ctx, name, namespace, s, args)
	if err != nil {
		return nil, err
	}
	all := []store{{"-onepassword", storeName, tokenSecret, o.Token, o.Settings.Vaults, o.Settings.Readers(), o.verified()}}
	if one := o.Storage; one != nil {
		all = append(all, store{
			"-onepassword-storage", storageStoreName, storageTokenSecret, one.Token, one.Vaults, one.Readers,
			fingerprint(append([]string{o.Credentials.Reveal(), one.Token.Reveal()}, one.Vaults...)...),
		})
	}
	var made []pulumi.Resource
	for _, one := range all {
		resource, err := one.create(ctx, name, namespace, operator, s, args)
		if err != nil {
			return nil, err
		}
		made = append(made, resource)
	}
	return made, nil
}

// install creates the Secret of the Connect server, the server, and after it the operator. It returns the operator's probe.
func (o *OnePassword) install(
	ctx *pulumi.Context, name string, namespace *v1.Namespace, s *SecretsFoundation, args *SecretsFoundationArgs,
) (operator pulumi.Resource, err error) {
	credentials, err := s.secret(ctx, name, namespace.Metadata.Name().Elem(), firstSecret{
		suffix: "-onepassword-credentials", name: cluster.ConnectCredentials,
		data: pulumi.StringMap{cluster.ConnectCredentialsKey: hidden(o.Credentials)},
	}, args.Child(s))
	if err != nil {
		return nil, err
	}
	server, err := s.install(ctx, name+"-connect", args, &service.Args{
		Service: o.Settings.Connect.Service(), After: append([]pulumi.Resource{namespace, credentials}, args.Services...),
		Reads: pulumi.String(fingerprint(o.Credentials.Reveal())), PodAnnotations: "connect.podAnnotations",
	})
	if err != nil {
		return nil, err
	}
	return s.install(ctx, name+"-external-secrets", args, &service.Args{
		Service: o.Settings.Operator.Service(), After: []pulumi.Resource{server},
	})
}

// store is a ClusterSecretStore with its token.
type store struct {
	suffix       string         // of the resources' names: -token and -store come after it
	name, secret string         // of the store, and of the Secret with the token
	token        cluster.Secret // for the Connect server
	vaults       []string       // in the order in which an item is looked for
	readers      []string       // the namespaces that may use the store; the operator refuses objects of all others
	verified     string         // changes with what the store verifies
}

// create registers the token's Secret and, after it and the operator, the store.
func (one store) create(ctx *pulumi.Context, name string, namespace *v1.Namespace, operator pulumi.Resource, s *SecretsFoundation,
	args *SecretsFoundationArgs) (pulumi.Resource, error) {
	token, err := s.secret(ctx, name, namespace.Metadata.Name().Elem(), firstSecret{
		suffix: one.suffix + "-token", name: one.secret, data: pulumi.StringMap{tokenKey: hidden(one.token)},
	}, args.Child(s))
	if err != nil {
		return nil, err
	}
	return custom(ctx, name+one.suffix+"-store", externalAPI, "ClusterSecretStore", metav1.ObjectMetaArgs{
		Name: pulumi.String(one.name),
		// The operator looks at a changed store at once, and at a refused store only minutes later.
		Annotations: pulumi.StringMap{cluster.AnnotationReads: pulumi.String(one.verified)},
	}, one.spec(), args.Child(s, pulumi.DependsOn([]pulumi.Resource{token, operator})))
}

// spec returns the spec of the ClusterSecretStore. Its provider takes no certificate of an authority, so the Connect server is asked
// inside the cluster, over http.
func (one store) spec() pulumi.Map {
	vaults := pulumi.Map{}
	for i, vault := range one.vaults {
		vaults[vault] = pulumi.Int(i + 1)
	}
	conditions := pulumi.Array{pulumi.Map{"namespaces": pulumi.ToStringArray(one.readers)}}
	return pulumi.Map{"conditions": conditions, "provider": pulumi.Map{"onepassword": pulumi.Map{
		"connectHost": pulumi.String(fmt.Sprintf("http://%s.%s.svc.%s:%d",
			cluster.ConnectName, cluster.ExternalSecretsNamespace, cluster.DNSDomain, cluster.ConnectPort)),
		"vaults": vaults,
		"auth": pulumi.Map{"secretRef": pulumi.Map{"connectTokenSecretRef": pulumi.Map{
			"namespace": pulumi.String(cluster.ExternalSecretsNamespace),
			"name":      pulumi.String(one.secret),
			"key":       pulumi.String(tokenKey),
		}}},
	}}}
}

// reads returns the spec of the ExternalSecret. The annotation changes with everything that the object verifies, so that the operator syncs
// again.
func (o *OnePassword) reads() pulumi.Map {
	return pulumi.Map{
		// In the operator's own form: it writes the object anew with its finalizer, and another form would be drift.
		"refreshInterval": pulumi.String(time.Hour.String()),
		"secretStoreRef":  pulumi.Map{"kind": pulumi.String("ClusterSecretStore"), "name": pulumi.String(storeName)},
		"target": pulumi.Map{
			"name": pulumi.String(probeName),
			"template": pulumi.Map{"metadata": pulumi.Map{
				"annotations": pulumi.StringMap{cluster.AnnotationReads: pulumi.String(o.verified())},
			}},
		},
		"data": pulumi.Array{pulumi.Map{
			"secretKey": pulumi.String("value"),
			"remoteRef": pulumi.Map{"key": pulumi.String(o.Settings.Probe.Item), "property": pulumi.String(o.Settings.Probe.Field)},
		}},
	}
}

// verified returns a checksum of all that the probe verifies.
func (o *OnePassword) verified() string {
	return fingerprint(append([]string{
		o.Credentials.Reveal(), o.Token.Reveal(), o.Settings.Probe.Item, o.Settings.Probe.Field, o.Settings.Connect.Version,
		o.Settings.Operator.Version,
	}, o.Settings.Vaults...)...)
}

// triggers returns what the probe verifies. A preview displays the changes.
func (o *OnePassword) triggers() pulumi.Array {
	triggers := pulumi.Array{
		pulumi.String("vaults " + strings.Join(o.Settings.Vaults, ", ")),
		pulumi.String("item " + o.Settings.Probe.Item + ", field " + o.Settings.Probe.Field),
		pulumi.String("verified " + o.verified()),
	}
	if one := o.Storage; one != nil {
		triggers = append(triggers, pulumi.String("vaults of the storage "+strings.Join(one.Vaults, ", ")),
			pulumi.String("verified for the storage "+fingerprint(append([]string{one.Token.Reveal()}, one.Vaults...)...)))
	}
	return triggers
}

// spec returns the probe's standard input, which contains the kubeconfig.
func (o *OnePassword) spec(args *SecretsFoundationArgs) pulumi.StringOutput {
	storage := ""
	if o.Storage != nil {
		storage = storageStoreName
	}
	return args.Spec(func(kubeconfig string) probe.Spec {
		return &externalsecrets.Spec{
			Target: args.Target(kubeconfig, args.Timeout),
			Store:  storeName, Storage: storage, Namespace: cluster.ExternalSecretsNamespace, ExternalSecret: probeName,
		}
	})
}

// custom registers an object of a provider's own kind. The probe waits for it; the provider's own wait could only time out.
func custom(
	ctx *pulumi.Context, name, apiVersion, kind string, meta metav1.ObjectMetaArgs, spec pulumi.Map, opts pulumi.ResourceOption,
) (pulumi.Resource, error) {
	annotations := component.Owned(pulumi.StringMap{"pulumi.com/skipAwait": pulumi.String("true")})
	given, _ := meta.Annotations.(pulumi.StringMap)
	maps.Copy(annotations, given)
	meta.Annotations = annotations
	return apiextensions.NewCustomResource(ctx, name, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String(apiVersion), Kind: pulumi.String(kind), Metadata: meta,
		OtherFields: kubernetes.UntypedArgs{"spec": spec},
	}, component.KubernetesPlugin(), opts)
}
