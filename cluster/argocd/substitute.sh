# Prints the manifests of this folder with the values of the cluster settings: the plugin cluster-settings of Argo CD runs it in bash, in a
# copy of the repository. Each file of $SETTINGS_DIR is a setting. It replaces what Flux's postBuild.substituteFrom replaces: ${NAME},
# ${NAME:=default}, ${NAME:-default}, and two dollars, which become one, so that ${NAME} with two stays as it is. A name without a value is
# an error, and so is another form of an expression. A folder without a kustomization gets one, as with Flux. What Flux would not remove with
# its manifest, by kustomize.toolkit.fluxcd.io/prune: disabled, Argo CD does not remove either, and does not count as out of sync.
#
# In the place of a HelmRelease are the objects of its chart, as helm-controller would make them: with its values, and changed by its
# postRenderers. What it depends on in this folder comes in an earlier sync wave. A chart is pulled once per version.
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

# kustomize writes labels and annotations of an object with four spaces, in blocks.
sub annotate {
  my ($metadata, $key, $value) = @_;
  return if ${$metadata} =~ s/^    \Q$key\E: (?:"(.*)"|\x27(.*)\x27|(.*))\n/"    $key: " . ($1 \/\/ $2 \/\/ $3) . ",$value\n"/me;
  ${$metadata} .= "  annotations:\n" unless ${$metadata} =~ /^  annotations:\n/m;
  ${$metadata} =~ s/^  annotations:\n/  annotations:\n    $key: $value\n/m;
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

# chart returns the folder with the chart of a release.
sub chart {
  my ($what, $spec) = @_;
  only("$what: spec.chart.spec", $spec, qw(chart interval reconcileStrategy sourceRef version));
  my ($name, $version, $source) = (text($spec, "chart"), text($spec, "version") // "", text($spec, "sourceRef", "name") // "");
  $version =~ /^v?\d+\.\d+\.\d+/ or die "$what: spec.chart.spec.version is " . ($version || "missing") . "; write one version\n";
  my $repository = $repositories{$source} or die "$what: spec.chart.spec.sourceRef: the folder has no HelmRepository $source; add it\n";
  only("HelmRepository $source: spec", $repository, qw(interval timeout type url));
  my $url = text($repository, "url");
  my $folder = join("_", $url, $name, $version) =~ s/[^A-Za-z0-9._-]+/-/gr;
  $folder = "$temporary/charts/$folder";
  unless (-d $folder) {
    my $new = run("mktemp", "-d", "$temporary/chart.XXXXXX") =~ s{\n$}{}r;
    run("helm", "pull", $url =~ m{^oci://} ? "$url/$name" : ("--repo", $url, $name), "--version", $version, "--untar", "--untardir", $new);
    mkdir "$temporary/charts";
    rename($new, $folder) or run("rm", "-rf", $new); # another rendering was faster
  }
  return "$folder/$name";
}

# wave is the number of releases that come before, one after the other.
sub wave {
  my ($name, @after) = @_;
  die "HelmRelease $name: spec.dependsOn leads back to itself\n" if grep { $_ eq $name } @after;
  my $wave = 0;
  for my $before (map { text($_, "name") } items(under($releases{$name}, "spec", "dependsOn"))) {
    next unless exists $releases{$before};
    my $own = wave($before, $name, @after) + 1;
    $wave = $own if $own > $wave;
  }
  return $wave;
}

# released returns the objects of a release.
sub released {
  my ($name) = @_;
  my ($what, $spec, $namespace) = ("HelmRelease $name", under($releases{$name}, "spec"), text($releases{$name}, "metadata", "namespace"));
  only("$what: spec", $spec, qw(chart dependsOn driftDetection install interval maxHistory postRenderers releaseName rollback test timeout
    uninstall upgrade values));
  defined $namespace or die "$what: metadata.namespace is missing; write it\n";
  my ($wave, $folder) = (wave($name), ".release-$name");
  mkdir $folder;
  save("$folder/values.yaml", under($spec, "values") // "{}\n");
  my @options = ("--namespace", $namespace, "--values", "$folder/values.yaml", "--skip-tests");
  push @options, "--include-crds" unless (text($spec, "install", "crds") // "") eq "Skip";
  push @options, "--kube-version", $ENV{KUBE_VERSION} if $ENV{KUBE_VERSION};
  push @options, "--api-versions", $ENV{KUBE_API_VERSIONS} if $ENV{KUBE_API_VERSIONS};
  my $chart = chart($what, under($spec, "chart", "spec"));
  my $objects = run("helm", "template", text($spec, "releaseName") // $name, $chart, @options);
  for my $changes ("", map { under($_, "kustomize") } items(under($spec, "postRenderers"))) {
    save("$folder/objects.yaml", $objects);
    save("$folder/kustomization.yaml", "resources: [objects.yaml]\n$changes");
    $objects = run("kustomize", "build", $folder);
  }
  my @objects = split(/^---\n/m, $objects);
  for my $object (@objects) {
    $object =~ s/^metadata:\n/metadata:\n  namespace: $namespace\n/m unless defined text($object, "metadata", "namespace");
    my ($metadata) = $object =~ /^(metadata:\n(?: .*\n)*)/m;
    my $before = $metadata;
    annotate(\$metadata, "argocd.argoproj.io/sync-wave", "\"$wave\"") if $wave;
    $object =~ s/\Q$before\E/$metadata/;
  }
  return @objects;
}

my $flux = qr{^apiVersion: (?:helm|source)\.toolkit\.fluxcd\.io/}m;
for my $document (split(/^(?=---)/m, <STDIN>)) {
  my ($metadata) = $document =~ /^(metadata:\n(?: .*\n)*)/m;
  $metadata //= "";
  if ($metadata !~ m{^    kustomize\.toolkit\.fluxcd\.io/substitute: "?disabled}m) {
    $document =~ s/(\$\$)|\$\{([^{}]*)\}/defined $1 ? "\$" : replaced($2)/ge;
    ($metadata) = $document =~ /^(metadata:\n(?: .*\n)*)/m;
    $metadata //= "";
  }
  if ($metadata =~ m{^    kustomize\.toolkit\.fluxcd\.io/prune: "?disabled}m) {
    my $before = $metadata;
    annotate(\$metadata, "argocd.argoproj.io/sync-options", "Prune=false,Delete=false");
    annotate(\$metadata, "argocd.argoproj.io/compare-options", "IgnoreExtraneous");
    $document =~ s/\Q$before\E/$metadata/;
  }
  my ($kind, $name) = (text($document, "kind") // "", text($document, "metadata", "name"));
  if ($document =~ $flux && $kind eq "HelmRelease") {
    $releases{$name} = $document;
  } elsif ($document =~ $flux && $kind eq "HelmRepository") {
    $repositories{$name} = under($document, "spec");
  } else {
    print $document;
  }
}
print map { "---\n$_" } map { released($_) } sort keys %releases;
' "$SETTINGS_DIR"
