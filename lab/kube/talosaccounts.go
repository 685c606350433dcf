package kube

import (
	"bytes"
	"context"
	stdx509 "crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// Talos's controller of accounts looks at all of them once a resync, and makes certificates of this lifetime anew before they expire.
const (
	accountResync      = time.Minute
	accountLifetime    = 6 * time.Hour
	accountRenewal     = time.Hour
	talosAPIEndpoint   = constants.KubernetesTalosAPIServiceName + "." + constants.KubernetesTalosAPIServiceNamespace
	accountContextName = "default"
)

var (
	accountVersion  = schema.GroupVersion{Group: constants.ServiceAccountResourceGroup, Version: constants.ServiceAccountResourceVersion}
	accountKind     = accountVersion.WithKind(constants.ServiceAccountResourceKind)
	accountResource = accountVersion.WithResource(constants.ServiceAccountResourcePlural)
)

// talosAccounts makes a Secret with a talosconfig for each ServiceAccount of talos.dev, as Talos's kubeaccess.CRDController does.
type talosAccounts struct {
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	ca         *x509.PEMEncodedCertificateAndKey // of the Talos API
	namespaces []string                          // that may have accounts
	roles      []string                          // that accounts may have
	events     record.EventRecorder
}

// run makes Secrets until ctx ends.
func (a *talosAccounts) run(ctx context.Context) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: a.kube.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "talos-sa-controller"})

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	accounts := dynamicinformer.NewDynamicSharedInformerFactory(a.dynamic, accountResync)
	informer := accounts.ForResource(accountResource)
	_, _ = informer.Informer().AddEventHandler(onChange(func(o metav1.Object) {
		queue.Add(cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()})
	}))
	others := informers.NewSharedInformerFactory(a.kube, accountResync)
	_, _ = others.Core().V1().Secrets().Informer().AddEventHandler(onChange(func(o metav1.Object) {
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == accountKind.Kind {
			queue.Add(cache.ObjectName{Namespace: o.GetNamespace(), Name: owner.Name})
		}
	}))
	accounts.Start(ctx.Done())
	others.Start(ctx.Done())
	defer accounts.Shutdown()
	defer others.Shutdown()
	accounts.WaitForCacheSync(ctx.Done())
	others.WaitForCacheSync(ctx.Done())
	for {
		name, over := queue.Get()
		if over {
			return
		}
		account, err := informer.Lister().ByNamespace(name.Namespace).Get(name.Name)
		if err == nil {
			err = a.sync(ctx, account.(*unstructured.Unstructured).DeepCopy())
		}
		if err == nil || apierrors.IsNotFound(err) {
			queue.Forget(name)
		} else {
			queue.AddRateLimited(name)
		}
		queue.Done(name)
	}
}

// onChange is a handler that calls one function for each object that appears, changes or goes.
func onChange(changed func(metav1.Object)) cache.ResourceEventHandler {
	handle := func(o any) {
		if gone, is := o.(cache.DeletedFinalStateUnknown); is {
			o = gone.Obj
		}
		if object, is := o.(metav1.Object); is {
			changed(object)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, next any) { handle(next) }, DeleteFunc: handle}
}

// refusal is why an account gets no Secret: the reason of the event, and its text, which the account's status has, too.
type refusal struct {
	reason, text string
	again        bool // Talos tries it again at once
}

// sync makes or renews the Secret of an account, and says in the account's status and by an event what came of it.
func (a *talosAccounts) sync(ctx context.Context, account *unstructured.Unstructured) error {
	all := a.kube.CoreV1().Secrets(account.GetNamespace())
	secret, err := all.Get(ctx, account.GetName(), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	roles, refused := a.judge(account, secret, missing)
	if refused != nil {
		_ = unstructured.SetNestedField(account.Object, refused.text, "status", "failureReason")
		if err := a.update(ctx, account); err != nil {
			return err
		}
		a.events.Event(account, corev1.EventTypeWarning, refused.reason, refused.text)
		if refused.again {
			return errors.New(refused.text)
		}
		return nil
	}
	if missing || !a.good(secret.Data[constants.TalosconfigFilename], roles) {
		talosconfig, err := a.talosconfig(roles)
		if err != nil {
			return err
		}
		if missing {
			_, err = all.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: account.GetName(),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(account, accountKind)}},
				Data: map[string][]byte{constants.TalosconfigFilename: talosconfig},
			}, metav1.CreateOptions{})
		} else {
			secret.Data = map[string][]byte{constants.TalosconfigFilename: talosconfig}
			_, err = all.Update(ctx, secret, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	unstructured.RemoveNestedField(account.Object, "status", "failureReason")
	if err := a.update(ctx, account); err != nil {
		return err
	}
	a.events.Event(account, corev1.EventTypeNormal, "Synced", "Synced successfully")
	return nil
}

// judge returns the roles of an account, or why it gets no Secret, in the order in which Talos finds out.
func (a *talosAccounts) judge(account *unstructured.Unstructured, secret *corev1.Secret, missing bool) (role.Set, *refusal) {
	if !missing && !metav1.IsControlledBy(secret, account) {
		return role.Zero, &refusal{"ErrResourceExists",
			fmt.Sprintf("Secret already exists and is not managed by controller: %s/%s", account.GetNamespace(), account.GetName()), true}
	}
	wanted, found, err := unstructured.NestedStringSlice(account.Object, "spec", "roles")
	if err != nil || !found {
		return role.Zero, &refusal{"ErrRolesNotFound", "Roles not found", true}
	}
	if !slices.Contains(a.namespaces, account.GetNamespace()) {
		return role.Zero, &refusal{"ErrNamespaceNotAllowed", "Namespace is not allowed: " + account.GetNamespace(), false}
	}
	denied := slices.DeleteFunc(slices.Clone(wanted), func(r string) bool { return slices.Contains(a.roles, r) })
	if len(denied) > 0 {
		return role.Zero, &refusal{"ErrRolesNotAllowed", fmt.Sprintf("Roles not allowed: %v", denied), false}
	}
	roles, _ := role.Parse(wanted)
	return roles, nil
}

// update writes the account. Its CRD has no subresource for the status.
func (a *talosAccounts) update(ctx context.Context, account *unstructured.Unstructured) error {
	_, err := a.dynamic.Resource(accountResource).Namespace(account.GetNamespace()).Update(ctx, account, metav1.UpdateOptions{})
	return err
}

func (a *talosAccounts) talosconfig(roles role.Set) ([]byte, error) {
	cert, err := secrets.NewAdminCertificateAndKey(time.Now(), a.ca, roles, accountLifetime)
	if err != nil {
		return nil, err
	}
	return clientconfig.NewConfig(accountContextName, []string{talosAPIEndpoint}, a.ca.Crt, cert).Bytes()
}

// good tells whether a talosconfig is one for these roles, of the present CA, and does not expire soon.
func (a *talosAccounts) good(talosconfig []byte, roles role.Set) bool {
	config, err := clientconfig.FromBytes(talosconfig)
	if err != nil || config.Contexts[config.Context] == nil {
		return false
	}
	in := config.Contexts[config.Context]
	ca, caErr := base64.StdEncoding.DecodeString(in.CA)
	crt, crtErr := base64.StdEncoding.DecodeString(in.Crt)
	block, _ := pem.Decode(crt)
	if caErr != nil || crtErr != nil || block == nil || !bytes.Equal(ca, a.ca.Crt) || !slices.Equal(in.Endpoints, []string{talosAPIEndpoint}) {
		return false
	}
	cert, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	left := time.Until(cert.NotAfter)
	return left > accountRenewal && left <= accountLifetime &&
		slices.Equal(slices.Sorted(slices.Values(cert.Subject.Organization)), slices.Sorted(slices.Values(roles.Strings())))
}
