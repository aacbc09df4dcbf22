"""Numbers of system calls on the machines that we know: what the filter refuses, and what it decides by argument."""

from __future__ import annotations

# name, x86_64, aarch64; "-": the machine has no such call
_REFUSED = """
# sockets
socket 41 198
connect 42 203
bind 49 200
listen 50 201
socketpair 53 199
# programs, processes, process groups
fork 57 -
vfork 58 -
execve 59 221
execveat 322 281
setsid 112 157
setpgid 109 154
# memory and handles of other processes
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
pidfd_open 434 434
pidfd_getfd 438 438
process_madvise 440 440
process_mrelease 448 448
migrate_pages 256 238
move_pages 279 239
# signals to other processes
tkill 200 130
rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240
pidfd_send_signal 424 424
# priorities and limits, also of other processes
sched_setparam 142 118
sched_setscheduler 144 119
sched_setaffinity 203 122
sched_setattr 314 274
ioprio_set 251 30
setrlimit 160 164
# mode, owner and times of files: Landlock does not cover them
chmod 90 -
fchmod 91 52
fchmodat 268 53
fchmodat2 452 452
chown 92 -
fchown 93 55
lchown 94 -
fchownat 260 54
utime 132 -
utimes 235 -
futimesat 261 -
utimensat 280 88
file_setattr 469 469
# extended attributes
setxattr 188 5
lsetxattr 189 6
fsetxattr 190 7
setxattrat 463 463
removexattr 197 14
lremovexattr 198 15
fremovexattr 199 16
removexattrat 466 466
getxattr 191 8
lgetxattr 192 9
fgetxattr 193 10
getxattrat 464 464
listxattr 194 11
llistxattr 195 12
flistxattr 196 13
listxattrat 465 465
# shared memory, semaphores and queues of the user
shmget 29 194
shmat 30 196
shmctl 31 195
shmdt 67 197
semget 64 190
semop 65 193
semctl 66 191
semtimedop 220 192
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
mq_open 240 180
mq_unlink 241 181
mq_timedsend 242 182
mq_timedreceive 243 183
mq_notify 244 184
mq_getsetattr 245 185
# roots, mounts, namespaces
chroot 161 51
pivot_root 155 41
mount 165 40
umount2 166 39
open_tree 428 428
open_tree_attr 467 467
move_mount 429 429
fsopen 430 430
fsconfig 431 431
fsmount 432 432
fspick 433 433
mount_setattr 442 442
unshare 272 97
setns 308 268
# users, groups, capabilities
setuid 105 146
setgid 106 144
setreuid 113 145
setregid 114 143
setresuid 117 147
setresgid 119 149
setfsuid 122 151
setfsgid 123 152
setgroups 116 159
capset 126 91
# the machine
acct 163 89
adjtimex 159 171
clock_adjtime 305 266
clock_settime 227 112
settimeofday 164 170
sethostname 170 161
setdomainname 171 162
reboot 169 142
swapon 167 224
swapoff 168 225
syslog 103 116
quotactl 179 60
quotactl_fd 443 443
init_module 175 105
finit_module 313 273
delete_module 176 106
kexec_load 246 104
kexec_file_load 320 294
iopl 172 -
ioperm 173 -
vhangup 153 58
# kernel interfaces that a filter cannot see into, or that watch other files
add_key 248 217
request_key 249 218
keyctl 250 219
perf_event_open 298 241
name_to_handle_at 303 264
open_by_handle_at 304 265
bpf 321 280
userfaultfd 323 282
io_uring_setup 425 425
io_uring_enter 426 426
io_uring_register 427 427
inotify_init 253 -
inotify_init1 294 26
inotify_add_watch 254 27
fanotify_init 300 262
fanotify_mark 301 263
"""
_BY_ARGUMENT = """
kill 62 129
tgkill 234 131
prlimit64 302 261
setpriority 141 140
ioctl 16 29
clone 56 220
clone3 435 435
"""
_COLUMNS = {"x86_64": 1, "aarch64": 2}


def refused(machine: str) -> dict[str, int]:
    """Calls that a media child never needs, by name."""
    return _read(_REFUSED, machine)


def by_argument(machine: str) -> dict[str, int]:
    """Calls that a media child needs for itself; whether one is allowed depends on its arguments."""
    return _read(_BY_ARGUMENT, machine)


def _read(table: str, machine: str) -> dict[str, int]:
    column = _COLUMNS[machine]
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
