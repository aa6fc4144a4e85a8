{{/* Template of the pods. */}}
{{- define "zonda.pod" -}}
{{- $isNodeLocal := include "zonda.isNodeLocal" . -}}
{{- $isCorefile := include "zonda.isCorefile" . -}}
{{- $hasSnapshot := and (not $isNodeLocal) (not $isCorefile) (ne .Values.snapshot.type "none") -}}
metadata:
  labels:
    {{- include "zonda.selector" . | nindent 4 }}
    k8s-app: {{ include "zonda.k8sApp" . }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if or .Values.podAnnotations (not .Values.corefile.configMap) }}
  annotations:
    {{- if not .Values.corefile.configMap }}
    # Pods are replaced when their configuration changes.
    zonda/configuration: {{ sha256sum (printf "%s%s" .Values.corefile.text (include "zonda.config" .)) }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  {{- if $isNodeLocal }}
  hostNetwork: true
  {{- else }}
  automountServiceAccountToken: true
  {{- end }}
  serviceAccountName: {{ include "zonda.account" . }}
  # /etc/resolv.conf is the node's: the cluster's would name this server.
  dnsPolicy: Default
  enableServiceLinks: false
  priorityClassName: {{ default (ternary "system-node-critical" "system-cluster-critical" (eq .Values.mode "node-local")) .Values.priorityClassName }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    seccompProfile:
      type: RuntimeDefault
    {{- if $isNodeLocal }}
    # In the node's network, only root binds port 53. It has one capability, and no more.
    runAsUser: 0
    runAsGroup: 0
    {{- else }}
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    # Lets a user that is not root bind port 53, whether or not the runtime does already.
    sysctls:
      - name: net.ipv4.ip_unprivileged_port_start
        value: "53"
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  tolerations:
    {{- if .Values.tolerations }}
    {{- toYaml .Values.tolerations | nindent 4 }}
    {{- else if $isNodeLocal }}
    - operator: Exists
    {{- else }}
    - key: CriticalAddonsOnly
      operator: Exists
    - key: node-role.kubernetes.io/control-plane
      effect: NoSchedule
    {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not $isNodeLocal }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "zonda.selector" $ | nindent 10 }}
      # Pods of one version spread by themselves, so that an update ends evenly, too.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
  {{- if $isNodeLocal }}
  initContainers:
    - name: interface
      image: {{ .Values.nodeLocal.interfaceImage }}
      command:
        - sh
        - -euc
        - |
          ip link show dev "$INTERFACE" >/dev/null 2>&1 || ip link add dev "$INTERFACE" type dummy
          ip link set dev "$INTERFACE" up
          ip addr show dev "$INTERFACE" | grep -q " $ADDRESS/" || ip addr add "$ADDRESS/$LENGTH" dev "$INTERFACE"
      env:
        - name: INTERFACE
          value: {{ .Values.nodeLocal.interface }}
        - name: ADDRESS
          value: {{ .Values.nodeLocal.address | quote }}
        - name: LENGTH
          value: {{ ternary "128" "32" (contains ":" .Values.nodeLocal.address) | quote }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
          add: [NET_ADMIN]
      resources:
        requests:
          cpu: 10m
          memory: 8Mi
        limits:
          memory: 32Mi
  {{- end }}
  containers:
    - name: zonda
      image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        {{- if $isCorefile }}
        - --corefile
        - /etc/coredns/Corefile
        {{- else }}
        - --config
        - /etc/zonda/zonda.toml
        {{- if not .Values.config }}
        {{- range .Values.forward }}
        - --forward
        - {{ . | quote }}
        {{- end }}
        {{- end }}
        {{- end }}
      env:
        # Where `zonda ready`, `zonda status` and other commands in the container reach the server.
        - name: ZONDA_ADMIN_SOCKET
          value: /run/zonda/zonda.sock
      {{- if not $isNodeLocal }}
      ports:
        - name: dns
          containerPort: 53
          protocol: UDP
        - name: dns-tcp
          containerPort: 53
          protocol: TCP
        {{- with include "zonda.metricsPort" . }}
        - name: metrics
          containerPort: {{ . }}
          protocol: TCP
        {{- end }}
      {{- end }}
      startupProbe:
        {{- include "zonda.livenessProbe" . | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 60
      livenessProbe:
        {{- include "zonda.livenessProbe" . | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 5
      readinessProbe:
        {{- if and $isCorefile .Values.corefile.readyPort }}
        httpGet:
          path: /ready
          port: {{ .Values.corefile.readyPort }}
        {{- else }}
        exec:
          command: [/usr/bin/zonda, ready]
        {{- end }}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      {{- if and .Values.preStopSleepSeconds (not $isNodeLocal) }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ .Values.preStopSleepSeconds }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
          add: [NET_BIND_SERVICE]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: configuration
          mountPath: {{ ternary "/etc/coredns" "/etc/zonda" (eq $isCorefile "true") }}
          readOnly: true
        {{- if and $isCorefile .Values.corefile.customConfigMap }}
        - name: custom
          mountPath: /etc/coredns/custom
          readOnly: true
        {{- end }}
        - name: run
          mountPath: /run/zonda
        {{- if $hasSnapshot }}
        - name: state
          mountPath: /var/lib/zonda
        {{- end }}
        {{- if and (not $isCorefile) .Values.metrics.tokenSecret }}
        - name: token
          mountPath: /etc/zonda-token
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: configuration
      configMap:
        name: {{ default (include "zonda.name" .) .Values.corefile.configMap }}
    {{- if and $isCorefile .Values.corefile.customConfigMap }}
    - name: custom
      configMap:
        name: {{ .Values.corefile.customConfigMap }}
        optional: true
    {{- end }}
    - name: run
      emptyDir:
        medium: Memory
        sizeLimit: 1Mi
    {{- if $hasSnapshot }}
    - name: state
      {{- if eq .Values.snapshot.type "hostPath" }}
      hostPath:
        path: {{ .Values.snapshot.hostPath }}
        type: DirectoryOrCreate
      {{- else }}
      emptyDir:
        sizeLimit: 256Mi
      {{- end }}
    {{- end }}
    {{- if and (not $isCorefile) .Values.metrics.tokenSecret }}
    - name: token
      secret:
        secretName: {{ .Values.metrics.tokenSecret }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* How the kubelet finds out that the process answers. */}}
{{- define "zonda.livenessProbe" -}}
{{- if and (include "zonda.isCorefile" .) .Values.corefile.healthPort -}}
httpGet:
  path: /health
  port: {{ .Values.corefile.healthPort }}
{{- else -}}
exec:
  command: [/usr/bin/zonda, status]
{{- end -}}
{{- end -}}
