"""The arithmetic of the adaptive policy: functions on numbers and vectors, without a clock or a database.

    ladder     how often a source publishes: rates from slow to fast
    profile    when it publishes: time of day, minute of the hour, day of the week
    summer     which clock its days follow
    rhythm     how regular the gaps between its events are
    dates      whether the dates it states can be believed
    digest     one visit taken into the state
    forecast   events expected from now on, cell by cell
    plan       the next visit that costs least
    replay     visit, digest, plan, visit again

The modules use the part of Python that Cython compiles as it is. The build puts compiled copies into `native`, with the
types from the `.pxd` files. `arithmetic` chooses between the two, and tests compare them.
"""
