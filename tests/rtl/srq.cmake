rnic_rtl_test(${RTL}/srq/srq_engine.sv)
