{{/* zonda.toml. */}}
{{- define "zonda.config" -}}
{{- if .Values.config -}}
{{- .Values.config -}}
{{- else -}}
version = 1
workers = {{ .Values.workers }}
{{- if include "zonda.isNodeLocal" . }}
{{- include "zonda.nodeLocalZones" . }}
{{- else }}
{{- include "zonda.clusterZones" . }}
{{- end }}
{{- include "zonda.forwardZone" . }}
{{- with include "zonda.kubeDnsConfigMap" . }}

[kube-dns]
config-map = "/etc/kube-dns"
{{- if include "zonda.isNodeLocal" $ }}
bootstrap = [{{ $.Values.nodeLocal.upstream | quote }}]
{{- end }}
{{- end }}

[cache]
bytes = {{ .Values.cacheBytes | quote }}
{{- if and (include "zonda.isNodeLocal" .) (include "zonda.hasState" .) }}
persist = "/var/lib/zonda/cache"
{{- end }}
{{- include "zonda.admin" . }}
{{- with .Values.extraConfig }}

{{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The interface of a node, and the zones that the cluster's DNS answers. */}}
{{- define "zonda.nodeLocalZones" }}

[node-local]
address = {{ toRawJson .Values.nodeLocal.addresses }}
interface = {{ .Values.nodeLocal.interface | quote }}
{{- range .Values.nodeLocal.zones }}

[[zone]]
name = {{ . | quote }}
{{- template "zonda.access" $ }}

[zone.forward]
to = [{{ printf "tcp://%s" (include "zonda.bracketed" $.Values.nodeLocal.upstream) | quote }}]
{{- end }}
{{- end -}}

{{/* The listeners of a pod, and the zones of the cluster's names. */}}
{{- define "zonda.clusterZones" }}
{{- range .Values.listen }}

[[listen]]
address = {{ . | quote }}
{{- end }}
{{- with .Values.kubernetes }}

[[zone]]
name = {{ .zone | quote }}

[zone.kubernetes]
pods = {{ .pods | quote }}
ttl = {{ .ttl | quote }}
{{- with .reverse }}
reverse = {{ toRawJson . }}
{{- end }}
{{- if and .reverse $.Values.forward (not (hasKey .options "fall-through")) }}
fall-through = true
fall-through-zones = ["in-addr.arpa", "ip6.arpa"]
{{- end }}
{{- if .autopath }}
autopath = true
{{- end }}
{{- template "zonda.zoneOptions" $ }}
{{- if include "zonda.hasState" $ }}
snapshot = "/var/lib/zonda/cluster.snapshot"
{{- end }}
{{- with .multicluster }}

[[zone]]
name = {{ . | quote }}

[zone.kubernetes]
multicluster = true
ttl = {{ $.Values.kubernetes.ttl | quote }}
{{- template "zonda.zoneOptions" $ }}
{{- if include "zonda.hasState" $ }}
snapshot = "/var/lib/zonda/multicluster.snapshot"
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Keys that all zones of the cluster's names have. */}}
{{- define "zonda.zoneOptions" }}
{{- with .Values.kubernetes.namespaces }}
namespaces = {{ toRawJson . }}
{{- end }}
{{- range $key, $value := .Values.kubernetes.options }}
{{ $key }} = {{ toRawJson $value }}
{{- end }}
{{- end -}}

{{/* The zone of all other names. */}}
{{- define "zonda.forwardZone" }}
{{- with .Values.forward }}

[[zone]]
name = "."
{{- template "zonda.access" $ }}

[zone.forward]
{{- $files := list }}
{{- $servers := list }}
{{- range . }}
{{- if hasPrefix "/" . }}{{ $files = append $files . }}{{ else }}{{ $servers = append $servers . }}{{ end }}
{{- end }}
{{- with $servers }}
to = {{ toRawJson . }}
{{- end }}
{{- with $files }}
resolv-conf = {{ toRawJson . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Clients of a forwarded zone. */}}
{{- define "zonda.access" }}
{{- with .Values.access }}
access = {{ toRawJson . }}
{{- end }}
{{- end -}}

{{/* Pages for probes and for Prometheus. */}}
{{- define "zonda.admin" }}

[admin]
address = "off"
{{- $isNodeLocal := include "zonda.isNodeLocal" . }}
{{- range $page := list "health" "ready" }}
{{- with index $.Values.ports $page }}
{{- if $isNodeLocal }}
{{ $page }} = [{{ printf "%s:%d" (include "zonda.bracketed" (first $.Values.nodeLocal.addresses)) (int .) | quote }}]
{{- else }}
{{ $page }} = {{ include "zonda.everywhere" . }}
{{- end }}
{{- end }}
{{- end }}
{{- with include "zonda.metricsPort" . }}
metrics = {{ include "zonda.everywhere" . }}
{{- end }}
{{- if not $isNodeLocal }}
lameduck = {{ .Values.lameduck | quote }}
{{- end }}
{{- if .Values.metrics.corednsNames }}

[metrics]
coredns-names = true
{{- end }}
{{- end -}}

{{/* A port on all addresses; the second is left out where the kernel has no IPv6. */}}
{{- define "zonda.everywhere" -}}
["0.0.0.0:{{ . }}", "[::]:{{ . }}"]
{{- end -}}

{{/* An address as it stands before a port. */}}
{{- define "zonda.bracketed" -}}
{{- if contains ":" . -}}[{{ . }}]{{- else -}}{{ . }}{{- end -}}
{{- end -}}
