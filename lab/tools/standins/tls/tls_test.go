package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"

	"github.com/blang/semver"
	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/integration"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// engine is the plugin as the engine sees it.
func engine(t *testing.T) integration.Server {
	t.Helper()
	provider, err := newProvider()
	if err != nil {
		t.Fatal(err)
	}
	server, err := integration.NewServer(t.Context(), "tls", semver.MustParse("5.2.0"), integration.WithProvider(provider))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func urn(token string) resource.URN {
	return resource.NewURN("stack", "project", "", tokens.Type(token), "it")
}

// create checks and creates, as the engine does on up.
func create(t *testing.T, s integration.Server, token string, in map[string]property.Value) property.Map {
	t.Helper()
	check, err := s.Check(p.CheckRequest{Urn: urn(token), Inputs: property.NewMap(in)})
	if err != nil || len(check.Failures) > 0 {
		t.Fatalf("%s: %v, %v", token, check.Failures, err)
	}
	made, err := s.Create(p.CreateRequest{Urn: urn(token), Properties: check.Inputs})
	if err != nil {
		t.Fatalf("%s: %v", token, err)
	}
	if made.ID == "" {
		t.Errorf("%s: no id", token)
	}
	diff, err := s.Diff(p.DiffRequest{ID: made.ID, Urn: urn(token), State: made.Properties, OldInputs: check.Inputs, Inputs: check.Inputs})
	if err != nil || diff.HasChanges {
		t.Errorf("%s: the same inputs make a change: %v, %v", token, diff.DetailedDiff, err)
	}
	return made.Properties
}

const (
	privateKeyToken    = "tls:index/privateKey:PrivateKey"
	certRequestToken   = "tls:index/certRequest:CertRequest"
	selfSignedToken    = "tls:index/selfSignedCert:SelfSignedCert"
	locallySignedToken = "tls:index/locallySignedCert:LocallySignedCert"
)

func texts(values ...string) property.Value {
	var list []property.Value
	for _, v := range values {
		list = append(list, property.New(v))
	}
	return property.New(list)
}

func name(commonName string) property.Value {
	return property.New(map[string]property.Value{"commonName": property.New(commonName)})
}

func TestPlugin_ItsCertificatesServeMutualTLS(t *testing.T) {
	s := engine(t)
	for _, algorithm := range []string{"RSA", "ECDSA", "ED25519"} {
		inputs := map[string]property.Value{"algorithm": property.New(algorithm)}
		if algorithm == "ECDSA" {
			inputs["ecdsaCurve"] = property.New("P256")
		}
		caKey := create(t, s, privateKeyToken, inputs).Get("privateKeyPem")
		ca := create(t, s, selfSignedToken, map[string]property.Value{
			"privateKeyPem": caKey, "subject": name("Test CA"), "isCaCertificate": property.New(true),
			"validityPeriodHours": property.New(24.0), "allowedUses": texts("cert_signing", "key_encipherment", "digital_signature"),
		})
		key := create(t, s, privateKeyToken, inputs).Get("privateKeyPem")
		request := create(t, s, certRequestToken, map[string]property.Value{
			"privateKeyPem": key, "subject": name("node"), "dnsNames": texts("*.mesh.test"), "ipAddresses": texts("127.0.0.1"),
		})
		cert := create(t, s, locallySignedToken, map[string]property.Value{
			"certRequestPem": request.Get("certRequestPem"), "caCertPem": ca.Get("certPem"), "caPrivateKeyPem": caKey,
			"validityPeriodHours": property.New(12.0), "allowedUses": texts("digital_signature", "server_auth", "client_auth"),
		})
		if got := request.Get("keyAlgorithm").AsString(); got != algorithm {
			t.Errorf("keyAlgorithm %s, want %s", got, algorithm)
		}
		handshake(t, ca.Get("certPem").AsString(), cert.Get("certPem").AsString(), key.AsString())
	}
}

// handshake does a mutual TLS handshake in which both sides have the certificate.
func handshake(t *testing.T, ca, cert, key string) {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		t.Fatal("no CA certificate")
	}
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	served := make(chan error, 1)
	go func() {
		served <- tls.Server(server, &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
		}).Handshake()
	}()
	config := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: "a.mesh.test"}
	if err := tls.Client(client, config).Handshake(); err != nil {
		t.Error("client:", err)
	}
	if err := <-served; err != nil {
		t.Error("server:", err)
	}
}

func TestPlugin_KeysAreSecretAndPreviewKnowsNone(t *testing.T) {
	s := engine(t)
	inputs := property.NewMap(map[string]property.Value{"algorithm": property.New("ECDSA"), "ecdsaCurve": property.New("P256")})
	for _, dry := range []bool{true, false} {
		check, err := s.Check(p.CheckRequest{Urn: urn(privateKeyToken), Inputs: inputs})
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Create(p.CreateRequest{Urn: urn(privateKeyToken), Properties: check.Inputs, DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		for _, output := range []string{"privateKeyPem", "privateKeyPemPkcs8", "privateKeyOpenssh"} {
			if v := made.Properties.Get(output); v.IsComputed() != dry || (!dry && !v.Secret()) {
				t.Errorf("preview %v: %s is computed %v, secret %v", dry, output, v.IsComputed(), v.Secret())
			}
		}
	}
}

func TestPlugin_KeysHaveTheFormatOfTheirAlgorithm(t *testing.T) {
	s := engine(t)
	for algorithm, want := range map[string]string{"RSA": "RSA PRIVATE KEY", "ECDSA": "EC PRIVATE KEY", "ED25519": "PRIVATE KEY"} {
		key := create(t, s, privateKeyToken, map[string]property.Value{"algorithm": property.New(algorithm)})
		if block, _ := pem.Decode([]byte(key.Get("privateKeyPem").AsString())); block == nil || block.Type != want {
			t.Errorf("%s: not a %s block", algorithm, want)
		}
		if ssh := key.Get("publicKeyOpenssh").AsString(); (algorithm == "ECDSA") != (ssh == "") { // the default curve P224 has no SSH form
			t.Errorf("%s: publicKeyOpenssh %q", algorithm, ssh)
		}
	}
}

func TestPlugin_AChangedInputReplacesTheCertificate(t *testing.T) {
	s := engine(t)
	key := create(t, s, privateKeyToken, map[string]property.Value{"algorithm": property.New("ED25519")}).Get("privateKeyPem")
	inputs := map[string]property.Value{
		"privateKeyPem": key, "validityPeriodHours": property.New(24.0), "allowedUses": texts("server_auth"), "dnsNames": texts("a.test"),
		"subject": name("a"),
	}
	state := create(t, s, selfSignedToken, inputs)
	check, err := s.Check(p.CheckRequest{Urn: urn(selfSignedToken), Inputs: property.NewMap(inputs)})
	if err != nil {
		t.Fatal(err)
	}
	for field, to := range map[string]property.Value{
		"validityPeriodHours": property.New(48.0),
		"isCaCertificate":     property.New(true),
		"dnsNames":            texts("b.test"),
		"subject":             name("b"),
		"allowedUses":         texts("client_auth"),
	} {
		diff, err := s.Diff(p.DiffRequest{
			Urn: urn(selfSignedToken), State: state, OldInputs: check.Inputs, Inputs: check.Inputs.Set(field, to),
		})
		if err != nil || !diff.HasChanges || len(diff.DetailedDiff) == 0 {
			t.Errorf("%s: changes %v, %v", field, diff.HasChanges, err)
		}
		for path, d := range diff.DetailedDiff {
			if d.Kind != p.UpdateReplace && d.Kind != p.AddReplace && d.Kind != p.DeleteReplace {
				t.Errorf("%s: %s is no replacement", path, d.Kind)
			}
		}
	}
}

func TestPlugin_BadInputIsNamedAndKeysAreNotRepeated(t *testing.T) {
	s := engine(t)
	_, err := s.Create(p.CreateRequest{Urn: urn(certRequestToken), Properties: property.NewMap(map[string]property.Value{
		"privateKeyPem": property.New("SECRETTEXT"), "ipAddresses": texts("1.2.3"),
	})})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"privateKeyPem: no PEM block", `ipAddresses[0]: "1.2.3"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "SECRETTEXT") {
		t.Errorf("%q repeats the key", err)
	}
}
