# Prints the manifests of this folder with the values of the cluster settings: the plugin cluster-settings of Argo CD runs it in bash, in a
# copy of the repository. Each file of $SETTINGS_DIR is a setting. It replaces what Flux's postBuild.substituteFrom replaces: ${NAME},
# ${NAME:=default}, ${NAME:-default}, and two dollars, which become one, so that ${NAME} with two stays as it is. A name without a value is
# an error, and so is another form of an expression. A folder without a kustomization gets one, as with Flux. What Flux would not remove with
# its manifest, by kustomize.toolkit.fluxcd.io/prune: disabled, Argo CD does not remove either, and does not count as out of sync.
#
# In the place of a HelmRelease are the objects of its chart, as helm-controller would make them: with its values, and changed by its
# postRenderers. What it depends on in this folder comes in an earlier sync wave. What Helm would not remove, Argo CD does not. A chart is
# pulled once per version.
#
# A release that Argo CD owns, with owner: argocd in the stack file, has what Slipway sets in the file of $VALUES_DIR that its valuesFrom
# names. Its objects have what Helm knows its own objects by, so that Pulumi can take them back. A ConfigMap tells that Argo CD owns the
# release, and with which of these values it was applied. While the release is suspended, there is nothing of it.
set -euo pipefail

if ! [ -e kustomization.yaml ] && ! [ -e kustomization.yml ] && ! [ -e Kustomization ]; then
  kustomize create --autodetect --recursive
fi

kustomize build . | perl -e '
use strict;
my $settings = shift;
local $/;
my %values;

sub value {
  my ($name) = @_;
  return $values{$name} if exists $values{$name};
  open(my $file, "<", "$settings/$name") or return $values{$name} = undef;
  return $values{$name} = <$file> // "";
}

sub replaced {
  my ($expression) = @_;
  $expression =~ /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?)[-=](.*))?$/s
    or die "\${$expression} is not a form that is replaced; write \${NAME}, \${NAME:=default} or \$\${NAME}\n";
  my ($name, $colon, $default) = ($1, $2, $3);
  my $value = value($name);
  return $value if defined $value && !(defined $default && $colon && $value eq "");
  return $default if defined $default;
  die "\${$name} is not a setting of this cluster; add it to gitops.settings of the stack file, or write \$\${$name}\n";
}

# metadata returns that part of a manifest, as kustomize writes it.
sub metadata {
  my ($document) = @_;
  return $document =~ /^(metadata:\n(?: .*\n|\n)*)/m ? $1 : "";
}

# annotate writes an annotation: what a function makes of the value that is there, which may be undefined. The part may be labels, too.
sub annotate {
  my ($document, $key, $value, $part) = @_;
  $part //= "annotations";
  my $before = metadata($document);
  my ($there) = $before =~ /^    \Q$key\E: (.*)\n/m;
  my $new = "    $key: " . $value->(defined $there ? $there =~ s/^(["\x27])(.*)\1$/$2/r : undef) . "\n";
  my $after = $before;
  $after .= "  $part:\n" unless $after =~ /^  $part:\n/m;
  $after =~ s/^    \Q$key\E: .*\n/$new/m or $after =~ s/^  $part:\n/  $part:\n$new/m;
  return $document =~ s/\Q$before\E/$after/r;
}

# kept is a manifest that Argo CD does not remove, and that does not count as out of sync.
sub kept {
  my ($document) = @_;
  for (["sync-options", "Prune=false,Delete=false"], ["compare-options", "IgnoreExtraneous"]) {
    my ($key, $option) = @{$_};
    $document = annotate($document, "argocd.argoproj.io/$key", sub { join(",", grep { defined } $_[0], $option) });
  }
  return $document;
}

sub marked {
  my ($document) = @_;
  return metadata($document) =~ m{^    kustomize\.toolkit\.fluxcd\.io/prune: "?disabled}m;
}

# under returns what a key of a mapping has, as lines of their own; undef without the key. A list starts at the left, too.
sub under {
  my ($text, @path) = @_;
  for my $key (@path) {
    return undef unless defined $text && $text =~ /^\Q$key\E:(?: (.+)\n?|\n((?:[- ].*\n|\n)*))/m;
    my ($value, $lines) = ($1, $2);
    $lines =~ s/^  //mg if defined $lines && $lines !~ /^- /;
    $text = $value // $lines;
  }
  return $text;
}

sub items {
  my ($list) = @_;
  return map { s/^[- ] //mgr } split(/^(?=- )/m, $list // "");
}

sub text {
  my $value = under(@_);
  $value =~ s/^(["\x27])(.*)\1$/$2/ if defined $value;
  return $value;
}

# only fails if a mapping has a key that is not known.
sub only {
  my ($what, $mapping, @known) = @_;
  for my $key (($mapping // "") =~ /^([A-Za-z]+):/mg) {
    die "$what: $key is for Flux; remove it, or write an Application for the chart\n" unless grep { $_ eq $key } @known;
  }
}

# word returns a name that is no option of a program, and no path to somewhere else.
sub word {
  my ($what, $name) = @_;
  ($name // "") =~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ or die "$what is " . ($name || "missing") . "; write a name\n";
  return $name;
}

sub run {
  open(my $output, "-|", @_) or die "$_[0]: $!\n";
  my $text = <$output>;
  close($output) or die "$_[0] $_[1] failed\n";
  return $text // "";
}

sub save {
  my ($file, $text) = @_;
  open(my $output, ">", $file) or die "$file: $!\n";
  print $output $text;
  close($output) or die "$file: $!\n";
}

my (%releases, %repositories);
my $temporary = $ENV{TMPDIR} // "/tmp";
$ENV{"HELM_$_\_HOME"} = "$temporary/helm/$_" for qw(CACHE CONFIG DATA);

# known are the keys of a HelmRelease and its HelmRepository, by their place, that are read here, or that only say how Flux proceeds. The
# check of the tree reads them in this file.
my %known = (
  spec => [qw(chart dependsOn driftDetection install interval maxHistory postRenderers releaseName rollback storageNamespace suspend
    targetNamespace timeout uninstall upgrade values)],
  driftDetection => [qw(mode)],
  install => [qw(crds disableTakeOwnership disableWait disableWaitForJobs remediation replace serverSideApply strategy timeout)],
  upgrade => [qw(cleanupOnFail crds disableTakeOwnership disableWait disableWaitForJobs force remediation serverSideApply strategy
    timeout)],
  chart => [qw(chart interval reconcileStrategy sourceRef version)],
  repository => [qw(interval timeout type url)],
);

# chart returns the folder with the chart of a release.
sub chart {
  my ($what, $spec, $namespace) = @_;
  only("$what: spec.chart.spec", $spec, @{$known{chart}});
  my ($name, $version) = (word("$what: spec.chart.spec.chart", text($spec, "chart")), text($spec, "version") // "");
  my $source = (text($spec, "sourceRef", "namespace") // $namespace) . "/" . (text($spec, "sourceRef", "name") // "");
  $version =~ /^v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/
    or die "$what: spec.chart.spec.version is " . ($version || "missing") . "; write one version\n";
  my $repository = $repositories{$source} or die "$what: spec.chart.spec.sourceRef: the folder has no HelmRepository $source; add it\n";
  only("HelmRepository $source: spec", $repository, @{$known{repository}});
  my $url = text($repository, "url") =~ s{/+$}{}r;
  $url =~ m{^(?:https?|oci)://} or die "HelmRepository $source: spec.url is $url; write one of https or oci\n";
  my $folder = "$temporary/charts/" . join("_", map { s/([^A-Za-z0-9.-])/sprintf("%%%02x", ord($1))/ger } $url, $name, $version);
  unless (-d $folder) {
    my $new = run("mktemp", "-d", "$temporary/chart.XXXXXX") =~ s{\n$}{}r;
    eval {
      run("helm", "pull", $url =~ m{^oci} ? "$url/$name" : ("--repo", $url, $name), "--version", $version, "--untar", "--untardir", $new);
      mkdir "$temporary/charts";
      rename($new, $folder); # or another rendering was faster
    };
    run("rm", "-rf", $new);
    -d $folder or die "$what: " . ($@ || "its chart cannot be kept: $!\n");
  }
  return "$folder/$name";
}

# owned returns the file with what Slipway sets in the chart of a release that Argo CD owns; undef for another release.
sub owned {
  my ($what, $name, $spec) = @_;
  my @sources = items(under($spec, "valuesFrom"));
  return undef unless @sources == 1 && join(" ", map { text($sources[0], $_) // "" } qw(kind name)) eq "Secret $name-values";
  # The values have keys, which the chart of an Application of another project could show.
  ($ENV{ARGOCD_APP_PROJECT_NAME} // "") eq "default" or die "$what: the values of a component are for Applications of the project default\n";
  my $file = ($ENV{VALUES_DIR} // "") . "/$name-values";
  -e $file or die "$what: the Secret argocd/$name-values is not there; pulumi up writes it for a component with owner: argocd, "
    . "and two minutes later it is seen here; of a component that is switched off, remove the file\n";
  return $file;
}

# of_helm is an object of a release with what Helm knows its own objects by.
sub of_helm {
  my ($object, $name, $namespace) = @_;
  $object = annotate($object, "meta.helm.sh/release-name", sub { "\"$name\"" });
  $object = annotate($object, "meta.helm.sh/release-namespace", sub { "\"$namespace\"" });
  return annotate($object, "app.kubernetes.io/managed-by", sub { "Helm" }, "labels");
}

# suspended tells whether Flux would leave a release alone. Argo CD does so only with objects that it does not remove.
sub suspended {
  my ($key) = @_;
  return 0 unless (text($releases{$key}, "spec", "suspend") // "") eq "true";
  marked($releases{$key}) or die "HelmRelease $key: spec.suspend would remove its objects; remove it, or add the annotation "
    . "kustomize.toolkit.fluxcd.io/prune: disabled before\n";
  return 1;
}

# wave is the number of releases that come before, one after the other.
sub wave {
  my ($key, @after) = @_;
  die "HelmRelease $key: spec.dependsOn leads back to itself\n" if grep { $_ eq $key } @after;
  my $wave = 0;
  for my $other (items(under($releases{$key}, "spec", "dependsOn"))) {
    my $before = (text($other, "namespace") // $key =~ s{/.*}{}r) . "/" . text($other, "name");
    next unless exists $releases{$before};
    my $own = wave($before, $key, @after) + 1;
    $wave = $own if $own > $wave;
  }
  return $wave;
}

# released returns the objects of a release.
sub released {
  my ($key) = @_;
  my ($what, $spec) = ("HelmRelease $key", under($releases{$key}, "spec"));
  my ($home, $name) = map { word("$what: metadata", $_) } split(m{/}, $key);
  my $own = owned($what, $name, $spec);
  only("$what: spec", $spec, @{$known{spec}}, defined $own ? "valuesFrom" : ());
  # Before they are read: if they change meanwhile, the record names the former ones, and the next rendering corrects that.
  my ($sum) = defined $own ? run("sha256sum", $own) =~ /^([0-9a-f]+)/ : ();
  only("$what: spec.$_", under($spec, $_), @{$known{$_}}) for qw(driftDetection install upgrade);
  my $target = text($spec, "targetNamespace");
  my $namespace = word("$what: spec.targetNamespace", $target // $home);
  my $release = word("$what: spec.releaseName", text($spec, "releaseName") // (defined $target ? "$target-$name" : $name));
  my ($wave, $folder) = (wave($key), ".release-$home-$name");
  mkdir $folder;
  save("$folder/values.yaml", under($spec, "values") // "{}\n");
  my @options = ("--namespace", $namespace, (map { ("--values", $_) } grep { defined } $own, "$folder/values.yaml"), "--skip-tests");
  push @options, "--include-crds" unless (text($spec, "install", "crds") // "") eq "Skip";
  push @options, "--kube-version", $ENV{KUBE_VERSION} if $ENV{KUBE_VERSION};
  push @options, "--api-versions", $ENV{KUBE_API_VERSIONS} if $ENV{KUBE_API_VERSIONS};
  my $chart = chart($what, under($spec, "chart", "spec"), $home);
  my $objects = run("helm", "template", $release, $chart, @options);
  for my $changes ("", map { under($_, "kustomize") } items(under($spec, "postRenderers"))) {
    save("$folder/objects.yaml", $objects);
    save("$folder/kustomization.yaml", "resources: [objects.yaml]\n$changes");
    $objects = run("kustomize", "build", $folder);
  }
  my @objects = split(/^---\n/m, $objects);
  # Argo CD would run what Helm runs when it uninstalls the release, and whoever hands the release back uninstalls nothing.
  my $delete = qr/^(?:(?:pre|post)-delete,?\s*)+$/;
  @objects = grep { (text($_, "metadata", "annotations", "helm.sh/hook") // "") !~ $delete } @objects if defined $own;
  for my $object (@objects) {
    $object =~ s/^metadata:\n/metadata:\n  namespace: $namespace\n/m unless defined text($object, "metadata", "namespace");
    my $annotations = under($object, "metadata", "annotations");
    # What Helm leaves: Argo CD would remove it when it is not in the repository any more.
    my $stays = text($object, "kind") eq "CustomResourceDefinition" || (text($annotations, "helm.sh/resource-policy") // "") eq "keep";
    $object = kept($object) if $stays || marked($releases{$key});
    next if defined text($annotations, "helm.sh/hook"); # whose weight is its wave
    $object = of_helm($object, $release, $namespace) if defined $own;
    next unless $wave;
    $object = annotate($object, "argocd.argoproj.io/sync-wave", sub { "\"" . ($wave + ($_[0] // 0)) . "\"" });
  }
  my $record = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: $name-values\n  namespace: argocd\ndata:\n";
  push @objects, "$record  checksum: $sum\n" if defined $own;
  return @objects;
}

my $flux = qr{^apiVersion: (?:helm|source)\.toolkit\.fluxcd\.io/}m;
for my $document (split(/^(?=---)/m, <STDIN>)) {
  if (metadata($document) !~ m{^    kustomize\.toolkit\.fluxcd\.io/substitute: "?disabled}m) {
    $document =~ s/(\$\$)|\$\{([^{}]*)\}/defined $1 ? "\$" : replaced($2)/ge;
  }
  $document = kept($document) if marked($document);
  my ($kind, $name) = (text($document, "kind") // "", text($document, "metadata", "name") // "");
  my $key = (text($document, "metadata", "namespace") // "") . "/$name";
  if ($document =~ $flux && $kind eq "HelmRelease") {
    die "HelmRelease $name: metadata.namespace is missing; write it\n" if $key =~ m{^/};
    $releases{$key} = $document;
  } elsif ($document =~ $flux && $kind eq "HelmRepository") {
    $repositories{$key} = under($document, "spec");
  } else {
    print $document;
  }
}
print map { "---\n$_" } map { released($_) } grep { !suspended($_) } sort keys %releases;
' "$SETTINGS_DIR"
