package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCmdline_IsolatesPageTablesOnlyForTheCheck(t *testing.T) {
	words := strings.Fields(isoCmdline)
	if on, off := slices.Index(words, "pti=on"), slices.Index(words, "pti=off"); on < 0 || off < on {
		t.Errorf("pti=on is word %d, pti=off word %d; the last one counts", on, off)
	}
	if strings.Contains(isoCmdline, "\n") || !slices.Contains(words, "talos.halt_if_installed=1") || !slices.Contains(words, "oops=panic") {
		t.Errorf("got %q", isoCmdline)
	}
	if strings.Contains(cmdline, "halt_if_installed") {
		t.Error("an installed machine would halt")
	}
}

func TestPackages_AreEachListedOnce(t *testing.T) {
	for name, list := range map[string][]string{
		"root": rootPackages, "left out": rootLeftOut, "installer": installerPackages, "installer left out": installerLeftOut,
		"libc": libcPackages, "mount": mountPackages, "modules": bootModules, "removed modules": modulesRemoved,
		"folders": rootFolders, "empty files": rootEmpty,
	} {
		seen := map[string]bool{}
		for _, entry := range list {
			if seen[entry] || entry == "" {
				t.Errorf("%s: %q twice", name, entry)
			}
			seen[entry] = true
		}
	}
	for _, name := range slices.Concat(rootPackages, installerPackages) {
		if matches(name, rootLeftOut) {
			t.Errorf("%s is installed and left out", name)
		}
	}
}

func TestImageList_HasTheLayersThatAreMade(t *testing.T) {
	made := map[string]bool{}
	for name := range (&composition{}).layers(nil, nil) {
		made["images/"+name+".tar"] = false
	}
	names := map[string]bool{}
	for _, i := range imageList("1.12.6", "1.35.8") {
		for _, layer := range i.Layers {
			if _, ok := made[layer]; !ok {
				t.Errorf("%s: no layer %s is made", i.Names[0], layer)
			}
			made[layer] = true
		}
		for _, name := range i.Names {
			if names[name] || strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
				t.Errorf("%s: twice, or with a host", name)
			}
			names[name] = true
		}
		if len(i.Tags) == 0 || len(i.Entrypoint) != 1 || !filepath.IsAbs(i.Entrypoint[0]) {
			t.Errorf("%+v", i)
		}
	}
	for layer, used := range made {
		if !used {
			t.Errorf("%s: in no image", layer)
		}
	}
}

func TestImageList_IsOfTheContractsForm(t *testing.T) {
	text, err := json.Marshal(imageList("1.12.6", "1.35.8")[1])
	want := `{"names":["siderolabs/kubelet"],"tags":["v1.35.8"],"layers":["images/libc.tar","images/mount.tar","images/kubelet.tar"],` +
		`"entrypoint":["/usr/local/bin/kubelet"],"env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestDebNames_AreThoseOfTheFilesThatAptWouldDownload(t *testing.T) {
	got := debNames("Reading package lists...\nThe following NEW packages will be installed:\n  udev\n" +
		"'http://mirror/pool/u/udev_252.39_amd64.deb' udev_252.39_amd64.deb 2200 MD5Sum:1\n" +
		"'http://mirror/pool/d/dmsetup_1.02%3a1.amd64.deb' dmsetup_2%3a1.02_amd64.deb 2200 MD5Sum:2\n")
	if want := []string{"dmsetup_2%3a1.02_amd64.deb", "udev_252.39_amd64.deb"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKernelRelease_IsThatOfThePackageOfAKernel(t *testing.T) {
	for depends, want := range map[string]string{
		"linux-image-cloud-amd64\n  Depends: linux-base-cloud-amd64\n  Depends: linux-image-7.3.4+deb13-cloud-amd64\n": "7.3.4+deb13-cloud-amd64",
		"linux-image-cloud-amd64\n": "",
		"":                          "",
	} {
		if got := kernelRelease(depends); got != want {
			t.Errorf("%q: got %q, want %q", depends, got, want)
		}
	}
}

func TestModuleFiles_LeaveOutWhatIsBuiltIn(t *testing.T) {
	got := moduleFiles("builtin loop\ninsmod /r/lib/modules/6.1/kernel/a.ko \ninsmod /r/lib/modules/6.1/kernel/b.ko x=1\n")
	if want := []string{"/r/lib/modules/6.1/kernel/a.ko", "/r/lib/modules/6.1/kernel/b.ko"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnly_NamesAPackageThatIsMissing(t *testing.T) {
	debs := []string{"/c/libc6_2.36_amd64.deb", "/c/libc6-dev_2.36_amd64.deb", "/c/mount_2.38_amd64.deb"}
	if got, err := only(debs, []string{"mount", "libc6"}); err != nil || !slices.Equal(got, []string{debs[2], debs[0]}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := only(debs, []string{"udev"}); err == nil || !strings.Contains(err.Error(), "udev") {
		t.Errorf("got %v", err)
	}
	if got := without(debs, []string{"libc6*"}); !slices.Equal(got, debs[2:]) {
		t.Errorf("got %q", got)
	}
}

func TestMergePrograms_PrefersAProgramToALinkToIt(t *testing.T) {
	root := t.TempDir()
	if err := skeleton(root); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("usr/bin/both", "bin")
	put("usr/sbin/both", "sbin")
	put("usr/sbin/runc", "runc")
	put("usr/sbin/only", "only")
	if err := os.Symlink("/usr/sbin/runc", filepath.Join(root, "usr/bin/runc")); err != nil {
		t.Fatal(err)
	}
	if err := mergePrograms(root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"usr/bin/both": "bin", "usr/bin/runc": "runc", "sbin/only": "only", "usr/sbin/only": "only"} {
		if text, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestCA_IsMadeOnceAndItsKeyStaysOutside(t *testing.T) {
	cache := t.TempDir()
	first, second := &composition{out: t.TempDir(), cache: cache}, &composition{out: t.TempDir(), cache: cache}
	for _, c := range []*composition{first, second} {
		if err := c.makeCA(); err != nil {
			t.Fatal(err)
		}
	}
	one, err := first.trusted()
	other, otherErr := second.trusted()
	if err != nil || otherErr != nil || string(one) != string(other) || strings.Contains(string(one), "PRIVATE") {
		t.Fatalf("%s, %s, %v, %v", one, other, err, otherErr)
	}
	block, rest := pem.Decode(one)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(rest) > 0 || !certificate.IsCA || certificate.NotAfter.Before(time.Now().AddDate(caYears, 0, -2)) {
		t.Errorf("%+v, %v", certificate, err)
	}
	text, err := os.ReadFile(first.path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	_, private := pem.Decode(text)
	if block, _ := pem.Decode(private); block == nil || block.Type != "PRIVATE KEY" {
		t.Error("ca.pem has no key")
	}
}

func TestAlign_LeavesNoTwoSectionsAtOneAddress(t *testing.T) {
	for address, want := range map[uint64]uint64{0: 0, 1: 0x10000, 0x10000: 0x10000, 0x10001: 0x20000} {
		if got := align(address); got != want {
			t.Errorf("%#x: got %#x, want %#x", address, got, want)
		}
	}
}

func TestOSRelease_NamesTheVersionThatIsBuilt(t *testing.T) {
	const of = "NAME=\"Talos\"\nVERSION_ID=%[1]s\nPRETTY_NAME=\"Talos (%[1]s)\"\n"
	want, got := fmt.Sprintf(of, "v1.12.7"), string(osRelease(fmt.Appendf(nil, of, "v1.12.6"), "1.12.7"))
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
