# Completion of h5fs for fish; the mount options are those that `h5fs -h` tells.

function __h5fs_values --description 'What an option may be set to'
    switch $argv[1]
        case external
            printf '%s\n' none beneath any
        case io_uring
            printf '%s\n' no auto yes
        case locking
            printf '%s\n' yes no best-effort
        case colours
            printf '%s\n' grey heat helix
        case order
            printf '%s\n' name creation
        case sandbox
            printf '%s\n' yes no
        case create
            echo v18
        case sync
            printf '%s\n' close fsync
        case xattr
            printf '%s\n' text raw
        case zarr_chunks
            printf '%s\n' stored decoded
        case disk_cache journal
            __fish_complete_directories "$argv[2]" | string replace -r '\t.*' ''
        case log
            printf '%s\n' syslog
            __fish_complete_path "$argv[2]" | string replace -r '\t.*' ''
    end
end

function __h5fs_mount_options --description 'The last one of a list with commas'
    set -l typed (commandline -ct | string replace -r '^-o' '')
    set -l before (string match -r '^.*,' -- "$typed")
    set -l last (string replace -r '^.*,' '' -- "$typed")
    if string match -q '*=*' -- "$last"
        set -l name (string replace -r '=.*' '' -- "$last")
        for value in (__h5fs_values $name (string replace -r '^[^=]*=' '' -- "$last"))
            printf '%s%s=%s\n' "$before" $name $value
        end
    else
        command h5fs -h 2>/dev/null | string replace -r -f '^    ([a-z][a-z0-9_-]*=?)[@A-Z/]* +(.*)' "$before\$1\t\$2"
    end
end

function __h5fs_files --description 'HDF5 files, and folders'
    __fish_complete_path (commandline -ct) | string match -r '^[^\t]*(?:/|\.(?:h5|hdf5|hdf|he5|mat|nc|nc4|nx5|nxs))(?:\t.*)?$'
end

complete -c h5fs -f -a '(__h5fs_files)'
complete -c h5fs -s f -d 'stay in the foreground'
complete -c h5fs -s d -d 'debug output of libfuse'
complete -c h5fs -s q -d 'log only what matters, and show no progress'
complete -c h5fs -s s -d 'serve one request at a time'
complete -c h5fs -s u -x -a '(__fish_complete_directories (commandline -ct))' -d 'unmount, and wait until the file is closed'
complete -c h5fs -s h -l help -d 'a summary of the options'
complete -c h5fs -s V -l version -d versions
complete -c h5fs -l cat -d 'print a file that a mount would show'
complete -c h5fs -l check -d 'verify all that the file holds'
complete -c h5fs -l kerchunk -d 'print where chunks lie, for fsspec'
complete -c h5fs -l list -d 'print what a mount would show'
complete -c h5fs -l extract -d 'copy what a mount would show into a new directory'
complete -c h5fs -l json -d '--list prints JSON'
complete -c h5fs -l reclaim -d 'give unused space back to the file system'
complete -c h5fs -l recover -d 'deal with the journal that a killed mount has left'
complete -c h5fs -s o -x -a '(__h5fs_mount_options)' -d 'mount options'
